// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream of host_runtime: a queue, its marks and the thread that runs what is in the queue.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <mutex>

#include <pthread.h>
#include <unistd.h>

#include <weightcast/base/check.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_caller_lock.hpp>
#include <weightcast/runtime/detail/host_marks.hpp>
#include <weightcast/runtime/detail/host_queue.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast::detail {

class host_state;

/// Lets the end of the process stop a stream's thread where it runs no operation.
class host_gate {
  public:
    /// Before an operation. False: the process ends.
    bool enter() noexcept { return turn(idle, running, std::memory_order_relaxed); }
    /// After the last operation before a pause. False: the process ends.
    bool leave() noexcept {
        if (turn(running, idle, std::memory_order_release)) return true;
        word_.store(gone, std::memory_order_release);
        return false;
    }
    /// Between two operations.
    bool is_closing() const noexcept { return word_.load(std::memory_order_relaxed) == closing; }

    /// No operation begins after this.
    void close() noexcept {
        while (!turn(idle, gone, std::memory_order_acquire) &&
               !turn(running, closing, std::memory_order_acquire) && !is_gone()) {}
    }
    /// No operation runs any more either. A yes synchronises with the thread.
    bool is_gone() const noexcept { return word_.load(std::memory_order_acquire) == gone; }

  private:
    static constexpr std::uint32_t idle = 0;
    static constexpr std::uint32_t running = 1;
    static constexpr std::uint32_t closing = 2;
    static constexpr std::uint32_t gone = 3;
    bool turn(std::uint32_t from, std::uint32_t to, std::memory_order order) noexcept {
        return word_.compare_exchange_strong(from, to, order, std::memory_order_relaxed);
    }
    std::atomic<std::uint32_t> word_{idle};
};

/// One stream, or the place of one that ended: places are used again and never freed, so that a handle to a
/// destroyed stream is found out instead of followed.
class host_stream {
  public:
    host_stream(host_state& state, host_mark_directory& marks) noexcept
        : state_{&state}, marks_{&marks} {}

    host_state& state() const noexcept { return *state_; }
    device where() const noexcept { return where_; }
    std::uint64_t generation() const noexcept {
        return generation_.load(std::memory_order_relaxed);
    }
    /// True while no one destroyed the stream of that generation.
    bool is_alive(std::uint64_t generation) const noexcept {
        return generation_.load(std::memory_order_relaxed) == generation;
    }
    /// @throws contract_violation  when it is not
    void expect_alive(std::uint64_t generation) const {
        if (!is_alive(generation)) {
            throw contract_violation{
                "host_runtime: this stream was destroyed; its handle may not be used"};
        }
    }
    /// The thread of the last stream here has ended. A yes synchronises with it.
    bool is_vacant() const noexcept { return vacant_.load(std::memory_order_acquire); }

    std::atomic<bool> of_communicator{false};
    host_stream* made_before = nullptr;  ///< of the state's list, under its lock

    /// Queues an operation. @throws contract_violation  when the stream was destroyed
    template <class F>
    void push(std::uint64_t generation, F const& operation) {
        host_node* sleeper = nullptr;
        {
            std::lock_guard const lock{mutex_};
            expect_alive(generation);
            sleeper = push_locked(operation);
        }
        host_queue::wake(sleeper);
    }
    /// Queues a point and returns it.
    host_mark_ring::issued push_point(std::uint64_t generation) {
        host_node* sleeper = nullptr;
        host_mark_ring::issued point{};
        {
            std::lock_guard const lock{mutex_};
            expect_alive(generation);
            point = push_point_locked(sleeper);
        }
        host_queue::wake(sleeper);
        return point;
    }
    /// Queues a wait for a point of any stream.
    void push_wait(std::uint64_t generation, host_mark& mark, std::uint64_t mark_generation) {
        push(generation, await_point{this, &mark, mark_generation});
    }

    /// All that was pushed is done. Only a yes synchronises with the stream.
    bool is_done() const noexcept {
        auto const pushed = pushed_.load(std::memory_order_relaxed);
        return finished_.load(std::memory_order_relaxed) == pushed &&
               finished_.load(std::memory_order_acquire) == pushed;
    }

    /// A wait for that device waits for this stream: it is busy, and not a communicator's.
    bool is_waited_for(device device_of_wait) const noexcept {
        return where_ == device_of_wait && !of_communicator.load(std::memory_order_relaxed) &&
               !is_done();
    }
    /// The point after all that was pushed, also for a stream that was closed.
    host_mark_ring::issued present_point() {
        host_node* sleeper = nullptr;
        host_mark_ring::issued point{};
        {
            std::lock_guard const lock{mutex_};
            if (closed_) return last_point_;
            point = push_point_locked(sleeper);
        }
        host_queue::wake(sleeper);
        return point;
    }

    /// Begins a stream here; the place is vacant. `order` seeds its delays.
    /// @throws system_failure  when there is no thread to have; the place stays vacant
    void start(device where, std::uint64_t order) {
        where_ = where;
        order_ = order;
        of_communicator.store(false, std::memory_order_relaxed);
        ended_ = false;
        operations_ = 0;
        closed_ = false;
        first_ = queue_.position();
        pushed_.store(0, std::memory_order_relaxed);
        finished_.store(0, std::memory_order_relaxed);
        vacant_.store(false, std::memory_order_relaxed);
        try {
            start_thread();
        } catch (...) {
            vacant_.store(true, std::memory_order_relaxed);
            throw;
        }
    }
    /// Takes no more operations; the thread ends after those that it has. Returns at once.
    void close(std::uint64_t generation) {
        host_node* sleeper = nullptr;
        {
            std::lock_guard const lock{mutex_};
            expect_alive(generation);
            last_point_ = push_point_locked(sleeper);
            auto* const second = push_locked(end_thread{this});
            if (sleeper == nullptr) sleeper = second;
            closed_ = true;
            generation_.fetch_add(1, std::memory_order_relaxed);
        }
        host_queue::wake(sleeper);
    }
    host_gate& gate() noexcept { return gate_; }
    /// At the end of the process: runs nothing any more.
    bool is_stopped() const noexcept { return gate_.is_gone() || is_vacant(); }

  private:
    struct reach_point {
        host_stream* stream;
        host_mark* mark;
        std::uint64_t generation;
        void operator()() const noexcept {
            stream
                ->count_operation();  // first: who saw the last point reached sees the stream done
            mark->reach(generation);
        }
    };
    struct await_point {
        host_stream* stream;
        host_mark* mark;
        std::uint64_t generation;
        void operator()() const noexcept {
            if (mark->reached(generation)) return;
            stream->leave();
            mark->wait(generation, never);
            stream->enter();
        }
    };
    struct end_thread {
        host_stream* stream;
        void operator()() const noexcept { stream->ended_ = true; }
    };

    template <class F>
    host_node* push_locked(F const& operation) {
        auto const number = pushed_.load(std::memory_order_relaxed) + 1;
        host_node* const sleeper = queue_.push(operation, draw_delay(number));
        pushed_.store(number, std::memory_order_relaxed);
        return sleeper;
    }
    host_mark_ring::issued push_point_locked(host_node*& sleeper) {
        queue_.prepare();  // a mark that was taken must be reached: the push may not fail
        auto const point = ring_.take(*marks_);
        sleeper = push_locked(reach_point{this, point.mark, point.point.generation()});
        return point;
    }
    std::uint32_t draw_delay(std::uint64_t number) const noexcept;

    // --- the thread's side ---
    void run() noexcept {
        host_node* node = first_;
        enter();
        while (!ended_) {
            await(*node);
            auto* const next = node->next.load(std::memory_order_relaxed);
            auto const before = operations_;
            node->run.load(std::memory_order_relaxed)(*node);
            node = next;
            if (operations_ == before) count_operation();
        }
        leave();
        vacant_.store(true, std::memory_order_release);  // the last look at this object
    }
    void count_operation() noexcept { finished_.store(++operations_, std::memory_order_release); }
    void await(host_node& node) noexcept {
        for (int i = 0; i < spins_before_sleep && !host_queue::is_ready(node); ++i) spin_pause();
        if (!host_queue::is_ready(node)) {
            leave();
            host_queue::sleep(node);
            enter();
        }
        if (auto const delay = node.delay_us.load(std::memory_order_relaxed); delay != 0) {
            leave();
            pause_for(delay);
            enter();
        }
        if (gate_.is_closing()) leave();
    }
    void enter() noexcept {
        if (!gate_.enter()) stop_for_good();
    }
    void leave() noexcept {
        if (!gate_.leave()) stop_for_good();
    }
    [[noreturn]] static void stop_for_good() noexcept {
        for (;;) ::pause();
    }
    static void pause_for(std::uint32_t microseconds) noexcept {
        timespec left{static_cast<std::time_t>(microseconds / 1'000'000U),
                      static_cast<long>(microseconds % 1'000'000U) * 1'000L};
        while (::nanosleep(&left, &left) != 0 && errno == EINTR) {}
    }
    static void* thread_main(void* self) noexcept {
        static_cast<host_stream*>(self)->run();
        return nullptr;
    }
    void start_thread() {
        pthread_attr_t attributes;
        ::pthread_attr_init(&attributes);
        ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        // The program's signals are for the program's own threads; what a thread does to itself stays its own.
        sigset_t blocked;
        sigset_t before;
        sigfillset(&blocked);
        for (int const own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
            sigdelset(&blocked, own);
        }
        ::pthread_sigmask(SIG_SETMASK, &blocked, &before);
        pthread_t thread{};
        int const code = ::pthread_create(&thread, &attributes, &thread_main, this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        ::pthread_attr_destroy(&attributes);
        check(posix_result{-code, code}, "host_runtime::create_stream: pthread_create");
    }

    host_state* const state_;
    host_mark_directory* const marks_;
    std::atomic<std::uint64_t> generation_{1};
    device where_{};
    std::uint64_t order_ = 0;

    host_caller_lock mutex_;
    host_queue queue_;
    host_mark_ring ring_;
    std::atomic<std::uint64_t> pushed_{0};
    bool closed_ = true;
    host_mark_ring::issued last_point_{};

    // of the thread
    host_node* first_ = nullptr;
    bool ended_ = false;
    std::uint64_t operations_ = 0;
    alignas(64) std::atomic<std::uint64_t> finished_{0};
    std::atomic<bool> vacant_{true};
    host_gate gate_;
};

}  // namespace weightcast::detail
