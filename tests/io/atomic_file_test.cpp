// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/atomic_file.hpp>

#include <csignal>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "io/temporary_folder.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::read_file;
using test::says;
using test::temporary_folder;
using test::write_file;

static_assert(!std::is_move_constructible_v<atomic_file>);

std::span<std::byte const> bytes_of(std::string_view text) {
    return std::as_bytes(std::span{text});
}

// No file grows beyond that while this lives: stands for a full disk.
class file_size_limit {
  public:
    explicit file_size_limit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        rlimit now = before_;
        now.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    file_size_limit(file_size_limit const&) = delete;
    ~file_size_limit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

  private:
    rlimit before_{};
    void (*handler_)(int);
};

BOOST_AUTO_TEST_SUITE(atomic_file_suite)

BOOST_AUTO_TEST_CASE(a_committed_file_is_there_in_full) {
    temporary_folder const folder;
    atomic_file file{folder / "f"};
    file.write(bytes_of("hello "));
    file.write({});
    file.write(bytes_of("world"));
    BOOST_TEST(!std::filesystem::exists(folder / "f"));
    file.commit();
    BOOST_TEST(read_file(folder / "f") == "hello world");
    BOOST_TEST((folder.names() == std::vector<std::string>{"f"}));
}

BOOST_AUTO_TEST_CASE(without_commit_nothing_is_left_behind) {
    temporary_folder const folder;
    write_file(folder / "f", "old");
    {
        atomic_file file{folder / "f"};
        file.write(bytes_of("new"));
        BOOST_TEST(folder.names().size() == 2U);
    }
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST((folder.names() == std::vector<std::string>{"f"}));
}

BOOST_AUTO_TEST_CASE(a_file_is_replaced_and_a_link_too) {
    temporary_folder const folder;
    write_file(folder / "target", "old");
    std::filesystem::create_symlink("target", folder / "f");
    atomic_file file{folder / "f"};
    file.write(bytes_of("new"));
    file.commit();
    BOOST_TEST(read_file(folder / "f") == "new");
    BOOST_TEST(!std::filesystem::is_symlink(folder / "f"));
    BOOST_TEST(read_file(folder / "target") == "old");
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_old_file) {
    temporary_folder const folder;
    write_file(folder / "f", "old");
    std::vector<std::byte> const much(100'000);
    {
        file_size_limit const limit{65'536};
        atomic_file file{folder / "f"};
        BOOST_CHECK_EXCEPTION(file.write(much), system_failure,
                              says({"cannot write file", "File too large"}));
    }
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST((folder.names() == std::vector<std::string>{"f"}));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_written_is_refused) {
    temporary_folder const folder;
    BOOST_CHECK_EXCEPTION(atomic_file{folder / "none" / "f"}, system_failure,
                          says({"cannot create file", "No such file"}));
    write_file(folder / "file", "");
    BOOST_CHECK_THROW(atomic_file{folder / "file" / "f"}, system_failure);
}

BOOST_AUTO_TEST_CASE(a_folder_in_the_way_is_not_replaced) {
    temporary_folder const folder;
    std::filesystem::create_directory(folder / "f");
    {
        atomic_file file{folder / "f"};
        file.write(bytes_of("new"));
        BOOST_CHECK_EXCEPTION(file.commit(), system_failure, says({"cannot replace file", "/f'"}));
    }
    BOOST_TEST(std::filesystem::is_directory(folder / "f"));
    BOOST_TEST(folder.names().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_name_without_a_folder_is_in_the_current_one) {
    temporary_folder const folder;
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    {
        atomic_file file{"f"};
        file.write(bytes_of("here"));
        file.commit();
    }
    std::filesystem::current_path(before);
    BOOST_TEST(read_file(folder / "f") == "here");
}

BOOST_AUTO_TEST_CASE(writers_of_one_path_do_not_mix) {
    temporary_folder const folder;
    std::vector<std::thread> writers;
    std::vector<char> failed(8, 0);
    for (std::size_t i = 0; i < failed.size(); ++i) {
        writers.emplace_back([&, i] {
            try {
                std::string const text(100'000, static_cast<char>('a' + i));
                atomic_file file{folder / "f"};
                file.write(bytes_of(text));
                file.commit();
            } catch (std::exception const&) {
                failed[i] = 1;
            }
        });
    }
    for (auto& w : writers) w.join();
    BOOST_TEST((failed == std::vector<char>(8, 0)));
    auto const text = read_file(folder / "f");
    BOOST_TEST(text == std::string(100'000, text.at(0)));
    BOOST_TEST(folder.names().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
