// SPDX-License-Identifier: Apache-2.0
// A shared library whose copy of the state no one else sees, as one that was linked with a version script
// that hides everything: here the state's functions have other names.
#define shared_host_state shared_host_state_of_a_second_copy
#define host_state_forked host_state_forked_of_a_second_copy

#include "runtime/shared/calls.hpp"
