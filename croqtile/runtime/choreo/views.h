// Tensors on the host: `spanned_data` owns its elements, `spanned_view` points at elements in host or device memory.
// Both are row-major and contiguous; extents are in elements.
#ifndef CHOREO_VIEWS_H
#define CHOREO_VIEWS_H

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "elements.h"
#include "errors.h"

namespace choreo {

// The extents of an N-dimensional tensor, from any mix of integer types: {M, N}.
template <std::size_t N>
struct extents : std::array<std::size_t, N> {
  template <typename... I, typename = std::enable_if_t<sizeof...(I) == N && (std::is_integral_v<I> && ...)>>
  extents(I... e) : std::array<std::size_t, N>{{checked(e)...}} {}
  extents(const std::array<std::size_t, N>& e) : std::array<std::size_t, N>(e) {}

 private:
  template <typename I>
  static std::size_t checked(I e) {
    if constexpr (std::is_signed_v<I>) choreo_assert(e >= 0, "a tensor's extent is negative: " + std::to_string(e));
    return static_cast<std::size_t>(e);
  }
};

template <typename T, std::size_t N>
class spanned_view {
  static_assert(N >= 1, "a view has at least one dimension");

 public:
  using value_type = std::remove_const_t<T>;
  static constexpr std::size_t rank = N;

  spanned_view(T* data, const extents<N>& shape) : data_(data), shape_(shape) {}

  // A view of mutable elements is also a view of constant ones.
  template <typename U, typename = std::enable_if_t<std::is_same_v<T, const U>>>
  spanned_view(const spanned_view<U, N>& other) : data_(other.data()), shape_(other.shape()) {}

  T* data() const { return data_; }
  const std::array<std::size_t, N>& shape() const { return shape_; }
  std::size_t element_count() const {
    std::size_t count = 1;
    for (std::size_t extent : shape_) count *= extent;
    return count;
  }
  std::size_t bytes() const { return element_count() * sizeof(T); }

  // An element of a vector; the sub-tensor at index i of anything else.
  decltype(auto) operator[](std::size_t i) const {
    if constexpr (N == 1) {
      return static_cast<T&>(data_[i]);
    } else {
      std::array<std::size_t, N - 1> inner;
      std::size_t pitch = 1;
      for (std::size_t d = 1; d < N; ++d) pitch *= inner[d - 1] = shape_[d];
      return spanned_view<T, N - 1>(data_ + i * pitch, extents<N - 1>(inner));
    }
  }

 private:
  T* data_;
  std::array<std::size_t, N> shape_;
};

template <typename T, std::size_t N>
spanned_view<T, N> make_spanview(T* data, const extents<N>& shape) {
  return {data, shape};
}

namespace detail {

// splitmix64: small, and the same sequence with every compiler.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

// Calls work(block, first, last) for every block of 2²⁰ elements, on all cores: filling gigabytes takes seconds otherwise.
template <typename Work>
void for_each_block(std::size_t count, Work work) {
  constexpr std::size_t size = std::size_t{1} << 20;
  const std::size_t blocks = (count + size - 1) / size;
  std::atomic<std::size_t> next{0};
  const auto worker = [&] {
    for (std::size_t block; (block = next++) < blocks;) work(block, block * size, std::min(count, (block + 1) * size));
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min<std::size_t>(blocks, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread& thread : threads) thread.join();
}

// Every filled tensor has a seed of its own, in the order of the calls: lhs and rhs differ, two runs do not.
inline std::uint64_t next_seed() {
  static std::atomic<std::uint64_t> calls{0};
  return 0x5a1a5eedu + 0x632be59bd9b4e019u * ++calls;
}

}  // namespace detail

template <typename T, std::size_t N>
class spanned_data {
 public:
  using value_type = T;
  static constexpr std::size_t rank = N;

  explicit spanned_data(const extents<N>& shape) : shape_(shape), elements_(count(shape)) {}

  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  const std::array<std::size_t, N>& shape() const { return shape_; }
  std::size_t element_count() const { return elements_.size(); }
  std::size_t bytes() const { return elements_.size() * sizeof(T); }

  spanned_view<T, N> view() { return {data(), extents<N>(shape_)}; }
  spanned_view<const T, N> view() const { return {data(), extents<N>(shape_)}; }
  decltype(auto) operator[](std::size_t i) { return view()[i]; }
  decltype(auto) operator[](std::size_t i) const { return view()[i]; }

  template <typename V>
  void fill(const V& value) {
    for (T& element : elements_) element = static_cast<T>(value);
  }

  // Uniform over [lo, hi): integers for integer elements, else reals (rounded to the element type, never to hi).
  void fill_random(double lo, double hi) {
    choreo_assert(lo < hi, "fill_random: the range [lo, hi) is empty");
    const std::uint64_t seed = detail::next_seed();
    detail::for_each_block(elements_.size(), [&](std::size_t block, std::size_t first, std::size_t last) {
      detail::random_source random(seed ^ (block << 32));
      for (std::size_t i = first; i < last; ++i) elements_[i] = draw(random, lo, hi);
    });
  }

 private:
  static T draw(detail::random_source& random, double lo, double hi) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::floor(std::ceil(lo) + random.uniform() * (std::ceil(hi) - std::ceil(lo))));
    } else {
      for (int attempt = 0; attempt < 64; ++attempt) {
        const T value = static_cast<T>(static_cast<float>(lo + random.uniform() * (hi - lo)));
        const float rounded = to_f32(value);
        if (rounded >= lo && rounded < hi) return value;
      }
      return static_cast<T>(static_cast<float>(lo));  // no representable number in between
    }
  }

  static std::size_t count(const extents<N>& shape) {
    std::size_t elements = 1;
    for (std::size_t extent : shape) elements *= extent;
    return elements;
  }

  std::array<std::size_t, N> shape_;
  std::vector<T> elements_;
};

// make_spandata<f16>(M, K): an owning host tensor, zero until it is filled.
template <typename T, typename... I>
spanned_data<T, sizeof...(I)> make_spandata(I... shape) {
  return spanned_data<T, sizeof...(I)>(extents<sizeof...(I)>(shape...));
}

}  // namespace choreo

#endif
