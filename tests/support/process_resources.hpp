// SPDX-License-Identifier: Apache-2.0
// What this process holds of the system, to be compared between two moments.
#pragma once

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

#include <weightcast/base/deadline.hpp>

namespace weightcast::test {

inline std::size_t entries_of(char const* directory) {
    std::size_t entries = 0;
    DIR* const open = opendir(directory);
    while (open != nullptr && readdir(open) != nullptr) ++entries;
    if (open != nullptr) closedir(open);
    return entries;
}

struct process_resources {
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t resident_bytes = 0;

    static process_resources now() {
        std::ifstream statm{"/proc/self/statm"};
        std::size_t total = 0;
        std::size_t resident = 0;
        statm >> total >> resident;
        return {entries_of("/proc/self/fd"), entries_of("/proc/self/task"),
                resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))};
    }
    /// Once it holds no more descriptors and threads than that; after 30 s, whatever it holds. Threads end by
    /// themselves, a moment after what they worked for.
    static process_resources settled(process_resources const& wanted) {
        auto const until = deadline::after(std::chrono::seconds{30});
        auto held = now();
        while ((held.threads > wanted.threads || held.descriptors > wanted.descriptors) &&
               !until.expired()) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
            held = now();
        }
        return held;
    }
};

}  // namespace weightcast::test
