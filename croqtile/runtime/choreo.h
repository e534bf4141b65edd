// The host runtime of compiled .co programs. It precedes line 1 of every generated source; `prelude()` in __init__.py
// makes one text of it. C++17, CUDA 12.5 or newer.
#ifndef CHOREO_H
#define CHOREO_H

#include <cmath>
#include <iostream>

#include "choreo/elements.h"
#include "choreo/errors.h"
#include "choreo/views.h"
#include "choreo/timing.h"
#include "choreo/verify.h"
#include "choreo/launch.h"

#endif
