// SPDX-License-Identifier: Apache-2.0
// What a user's program includes; built in each of the four ways to get at the library.

#include <weightcast/comm/gloo_communicator.hpp>
#include <weightcast/io.hpp>
#include <weightcast/weightcast.hpp>

#include <iostream>

int main() {
    weightcast::error const nothing_happened{"consumed"};
    std::cout << nothing_happened.what() << '\n';
}
