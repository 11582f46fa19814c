// SPDX-License-Identifier: Apache-2.0
// Another shared library of a user who hides all symbols: it is built with -fvisibility=hidden.
#include "runtime/shared/calls.hpp"
