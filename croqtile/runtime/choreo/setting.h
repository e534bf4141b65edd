// One number of an options structure.
#ifndef CHOREO_SETTING_H
#define CHOREO_SETTING_H

#include <type_traits>

namespace choreo {

// A T that any number initialises, also in braces, where a T itself refuses conversions that may narrow. So the structures
// stay aggregates, which can be initialised by name as well.
template <typename T>
class setting {
 public:
  template <typename U, typename = std::enable_if_t<std::is_arithmetic_v<U> || std::is_enum_v<U>>>
  constexpr setting(U value) : value_(static_cast<T>(value)) {}
  constexpr operator T() const { return value_; }
  constexpr operator T&() { return value_; }

 private:
  T value_;
};

}  // namespace choreo

#endif
