// Stand-in for CUDA's header of this name.
#pragma once

#include "../version.cuh"

namespace cub {

struct Sum {
  template <class T, class U>
  auto operator()(const T& a, const U& b) const {
    return a + b;
  }
};
struct Max {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b > a ? b : a;
  }
};
struct Min {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};

}  // namespace cub
