// What the programs of all families share: arguments, device tensors, checks, and the course of a run.
//
// A run launches once and checks the whole output, then repeats launches if asked to, then takes the time:
//   CHOREO_SKIP_VERIFY=1, --skip-verify        no checks
//   CHOREO_DISABLE_TIMING=1, --disable-timing  no timing
//   CHOREO_TIMING_WARMUP, CHOREO_TIMING_REPEAT number of calls
//   --repeat-check N                           N more launches, each into a poisoned output with shared memory full of
//                                              NaN before it; every output must have the same checksum
//   CHOREO_STRESS_SEEDS=N                      in a stress build (choreo --stress): N launches with the seeds
//                                              CHOREO_STRESS_FIRST_SEED, … (from 0); every output must be that of the
//                                              launch without a seed, or have the checksum CHOREO_STRESS_EXPECTED
// Unknown arguments are ignored, with a note. The last line of a good run is `Test Passed`.
#ifndef KERNELS_PROGRAM_H
#define KERNELS_PROGRAM_H

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace program {

[[noreturn]] inline void fail(const std::string& reason) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", reason.c_str());
  std::printf("Test FAILED\n");
  std::exit(EXIT_FAILURE);
}

inline long long to_integer(const std::string& name, const char* text, long long least) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || value < least)
    fail(name + " needs an integer of at least " + std::to_string(least) + ", got `" + text + "`");
  return value;
}

inline long long environment(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : to_integer(name, text, 0);
}

inline bool is_set(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0;
}

// `--name value`, `--name=value` and `--flag`, in any order. A program asks for its integers, then calls `close`.
class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  bool flag(const std::string& name) const {
    for (const std::string& word : words_)
      if (word == name) return true;
    return false;
  }

  // An argument of this program, `meaning` for its help.
  long long integer(const std::string& name, long long otherwise, const std::string& meaning, long long least = 1) {
    named_.push_back({name, meaning + " (" + std::to_string(otherwise) + ")", true});
    return value(name, otherwise, least);
  }

  // Help if asked for, before anything needs a GPU. Other words are ignored, but not without a word: a size that is
  // misspelt would else be a measurement of another size.
  void close() {
    named_.push_back({"--repeat-check", "more launches, whose outputs must be identical (0)", true});
    named_.push_back({"--skip-verify", "no checks"});
    named_.push_back({"--disable-timing", "no timing"});
    if (flag("--help") || flag("-h")) {
      std::puts("Arguments (default):");
      for (const Named& named : named_)
        std::printf("  %-18s %s\n", (named.name + (named.valued ? " N" : "")).c_str(), named.meaning.c_str());
      std::exit(EXIT_SUCCESS);
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::string name = words_[i].substr(0, words_[i].find('='));
      const auto known = std::find_if(named_.begin(), named_.end(), [&](const Named& one) { return one.name == name; });
      if (known == named_.end() || (!known->valued && name != words_[i]))
        std::fprintf(stderr, "note: ignored: `%s` is no argument of this program (see --help)\n", words_[i].c_str());
      else if (known->valued && name == words_[i])
        ++i;
    }
  }

  long long repeats() const { return value("--repeat-check", 0, 0); }
  bool verify() const { return !flag("--skip-verify") && !is_set("CHOREO_SKIP_VERIFY"); }
  bool timing() const { return !flag("--disable-timing") && !is_set("CHOREO_DISABLE_TIMING"); }

 private:
  struct Named {
    std::string name, meaning;
    bool valued = false;
  };

  long long value(const std::string& name, long long otherwise, long long least) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].compare(0, name.size() + 1, name + "=") == 0)
        return to_integer(name, words_[i].c_str() + name.size() + 1, least);
      if (words_[i] == name) return to_integer(name, i + 1 < words_.size() ? words_[i + 1].c_str() : "", least);
    }
    return otherwise;
  }

  std::vector<std::string> words_;
  std::vector<Named> named_;
};

// A tensor in device memory: a copy of a host tensor, and back.
template <typename T, std::size_t N>
class DeviceTensor {
 public:
  explicit DeviceTensor(const choreo::spanned_data<T, N>& host) : shape_(host.shape()), bytes_(host.bytes()) {
    choreo::abend_true(cudaMalloc(&data_, bytes_));
    choreo::abend_true(cudaMemcpy(data_, host.data(), bytes_, cudaMemcpyHostToDevice));
  }
  DeviceTensor(const DeviceTensor&) = delete;
  ~DeviceTensor() { cudaFree(data_); }

  T* data() const { return data_; }
  choreo::spanned_view<T, N> view() const { return {data_, choreo::extents<N>(shape_)}; }

  // All bits set: NaN in every floating-point type, so that an element that is not written does not pass for one.
  void poison() { choreo::abend_true(cudaMemset(data_, 0xff, bytes_)); }
  void copy_to(choreo::spanned_data<T, N>& host) const {
    choreo::abend_true(cudaMemcpy(host.data(), data_, bytes_, cudaMemcpyDeviceToHost));
  }

 private:
  std::array<std::size_t, N> shape_;
  std::size_t bytes_;
  T* data_ = nullptr;
};

// FNV-1a over 64-bit words: equal outputs have equal checksums, whatever mode the kernel was compiled in.
template <typename T, std::size_t N>
std::uint64_t checksum(const choreo::spanned_data<T, N>& tensor) {
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(tensor.data());
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t at = 0; at < tensor.bytes(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min<std::size_t>(8, tensor.bytes() - at));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

// Fills all of an SM's shared memory with NaN. Launched with the largest request, so that each CTA has an SM to itself.
__global__ void fill_shared_memory(int words) {
  extern __shared__ unsigned int shared_words[];
  for (int i = threadIdx.x; i < words; i += blockDim.x) reinterpret_cast<volatile unsigned int*>(shared_words)[i] = ~0u;
}

inline void poison_shared_memory() {
  static const int bytes = [] {
    int device = 0, limit = 0;
    choreo::abend_true(cudaGetDevice(&device));
    choreo::abend_true(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    choreo::abend_true(cudaFuncSetAttribute(fill_shared_memory, cudaFuncAttributeMaxDynamicSharedMemorySize, limit));
    return limit;
  }();
  fill_shared_memory<<<1024, 256, bytes>>>(bytes / 4);
  choreo::abend_true(cudaGetLastError());
  choreo::abend_true(cudaDeviceSynchronize());
}

// Keeps the GPU busy while the host queues the launches that are timed after it. Without it, a host thread that loses
// its core for some milliseconds while it is not yet ahead shows as time of the kernel; and clocks rise meanwhile.
__global__ void hold(unsigned long long nanoseconds) {
  const auto now = [] {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  };
  const unsigned long long start = now();
  while (now() - start < nanoseconds) __nanosleep(1000);
}

// Counts the elements that are further than base + relative · |reference| from the reference, and finds the first one.
template <typename T>
__global__ void compare_with(const T* output, const float* reference, std::size_t count, float base, float relative,
                             unsigned long long* bad, unsigned long long* first) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const float expected = reference[i];
    if (fabsf(choreo::to_f32(output[i]) - expected) <= base + relative * fabsf(expected)) continue;  // never for NaN
    atomicAdd(bad, 1ull);
    atomicMin(first, static_cast<unsigned long long>(i));
  }
}

// Compares the whole output with `fill_reference(float* reference)`, a plain GPU computation in f32.
template <typename T, std::size_t N, typename Reference>
void verify_whole(const DeviceTensor<T, N>& output, float base, float relative, Reference fill_reference) {
  const std::size_t count = output.view().element_count();
  float* reference = nullptr;
  unsigned long long* found = nullptr;
  choreo::abend_true(cudaMalloc(&reference, count * sizeof(float)));
  choreo::abend_true(cudaMalloc(&found, 2 * sizeof *found));
  unsigned long long bad_first[2] = {0, ~0ull};
  choreo::abend_true(cudaMemcpy(found, bad_first, sizeof bad_first, cudaMemcpyHostToDevice));
  fill_reference(reference);
  choreo::abend_true(cudaGetLastError());
  compare_with<<<1024, 256>>>(output.data(), reference, count, base, relative, found, found + 1);
  choreo::abend_true(cudaGetLastError());
  choreo::abend_true(cudaMemcpy(bad_first, found, sizeof bad_first, cudaMemcpyDeviceToHost));
  if (bad_first[0] != 0) {
    T value;
    float expected;
    choreo::abend_true(cudaMemcpy(&value, output.data() + bad_first[1], sizeof value, cudaMemcpyDeviceToHost));
    choreo::abend_true(cudaMemcpy(&expected, reference + bad_first[1], sizeof expected, cudaMemcpyDeviceToHost));
    fail("whole output: " + std::to_string(bad_first[0]) + " of " + std::to_string(count) +
         " elements are wrong, first element " + std::to_string(bad_first[1]) + ": " +
         std::to_string(choreo::to_f32(value)) + ", expected " + std::to_string(expected));
  }
  choreo::abend_true(cudaFree(reference));
  choreo::abend_true(cudaFree(found));
  std::printf("whole output: %zu elements agree with the GPU reference\n", count);
}

#ifdef CHOREO_STRESS
// Launches with one seed after another and compares every bit of the output. `host` holds the output of a launch without
// a seed. Goes on after a difference, so that the number of seeds that show one is known.
template <typename T, std::size_t N, typename Launch>
void stress(DeviceTensor<T, N>& output, choreo::spanned_data<T, N>& host, Launch launch) {
  const long long seeds = environment("CHOREO_STRESS_SEEDS", 0), first = environment("CHOREO_STRESS_FIRST_SEED", 0);
  if (seeds == 0) return;
  const auto milliseconds = [&](long long seed) {
    output.poison();
    choreo::stress::seed() = seed;
    const auto start = std::chrono::steady_clock::now();
    launch();
    choreo::abend_true(cudaDeviceSynchronize());
    const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
    output.copy_to(host);
    return taken.count();
  };
  const char* text = std::getenv("CHOREO_STRESS_EXPECTED");
  const std::uint64_t plain = checksum(host);
  const std::uint64_t expected = text == nullptr ? plain : std::strtoull(text, nullptr, 16);
  // Bits are compared with the output that is known to be right; where there is none, checksums are.
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(host.data());
  const std::vector<unsigned char> reference(bytes, bytes + (plain == expected ? host.bytes() : 0));
  if (plain != expected) std::printf("stress: without a seed the output is not the expected one\n");
  const double undisturbed = milliseconds(-1);
  double slowest = 0;
  long long different = 0;
  for (long long seed = first; seed < first + seeds; ++seed) {
    slowest = std::max(slowest, milliseconds(seed));
    const bool same = reference.empty() ? checksum(host) == expected
                                        : std::memcmp(host.data(), reference.data(), reference.size()) == 0;
    if (same) continue;
    if (++different <= 10) std::printf("stress: seed %lld: another output\n", seed);
  }
  std::printf("stress: %lld seeds, %lld differ, plain %s, %.3f ms undisturbed, %.3f ms slowest\n", seeds, different,
              plain == expected ? "equal" : "differs", undisturbed, slowest);
  if (different > 0 || plain != expected) fail("stress: an output differs");
  choreo::stress::seed() = -1;
}
#endif

// The course of a run. `launch()` computes into `output`; `verify(host)` checks it; `operations` are those of one launch.
template <typename T, std::size_t N, typename Launch, typename Verify>
int run(const Arguments& arguments, choreo::TimerOption timer, double operations, DeviceTensor<T, N>& output,
        choreo::spanned_data<T, N>& host, Launch launch, Verify verify) {
  output.poison();
  launch();
  choreo::abend_true(cudaDeviceSynchronize());
  output.copy_to(host);
  const std::uint64_t expected = checksum(host);
  std::printf("checksum: %016llx\n", static_cast<unsigned long long>(expected));
  if (arguments.verify())
    verify();
  else
    std::printf("verification skipped\n");

  const long long repeats = arguments.repeats();
  for (long long i = 0; i < repeats; ++i) {
    output.poison();
    poison_shared_memory();
    launch();
    choreo::abend_true(cudaDeviceSynchronize());
    output.copy_to(host);
    if (checksum(host) != expected)
      fail("launch " + std::to_string(i + 1) + " of " + std::to_string(repeats) + " gave another output");
  }
  if (repeats > 0) std::printf("repeat check: %lld launches, identical outputs\n", repeats);

#ifdef CHOREO_STRESS
  stress(output, host, launch);
#endif
  timer.warmup = static_cast<int>(environment("CHOREO_TIMING_WARMUP", timer.warmup));
  timer.repeat = static_cast<int>(environment("CHOREO_TIMING_REPEAT", timer.repeat));
  if (arguments.timing() && timer.repeat > 0) {
    hold<<<1, 1>>>(25'000'000);
    choreo::abend_true(cudaGetLastError());
    const float milliseconds = choreo::timing(launch, timer);
    std::printf("time: %.4f ms, %.1f TFLOPS (mean of %d calls after %d)\n", milliseconds,
                operations / milliseconds * 1e-9, timer.repeat, timer.warmup);
    output.copy_to(host);
    if (checksum(host) != expected) fail("the output changed during the timed launches");
  }
  std::printf("Test Passed\n");
  return 0;
}

}  // namespace program

#endif
