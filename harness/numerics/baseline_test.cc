#include "harness/testing/catch_for_tests.h"
