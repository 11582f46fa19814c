// SPDX-License-Identifier: Apache-2.0
// main() of every test program, and of the children that tests start (child_process.hpp).

#include <boost/test/unit_test.hpp>

#include <cstdlib>

#include <support/child_process.hpp>

namespace {

bool name_the_suite() {
    boost::unit_test::framework::master_test_suite().p_name.value = "weightcast";
    return true;
}

}  // namespace

int main(int argc, char* argv[]) {
    if (auto const code = weightcast::test::run_child_if_asked(argc, argv)) return *code;
    // A crash shall end the program as it would elsewhere (sanitizers see it, cores are written), and a
    // child process that was killed on purpose is no error of ours.
    setenv("BOOST_TEST_CATCH_SYSTEM_ERRORS", "no", 0);
    return boost::unit_test::unit_test_main(&name_the_suite, argc, argv);
}
