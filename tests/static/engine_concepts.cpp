// SPDX-License-Identifier: Apache-2.0
// TransferEngine and TrainerEngine: the least that models each, and near-misses that lack one atom each.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/concepts.hpp>
#include <weightcast/engine.hpp>
#include <weightcast/model.hpp>

namespace {

using namespace weightcast;

// --- TransferEngine ---

struct init_info {};
struct update_info {};
struct target_info {};

// Neither default-made, copied nor moved.
struct archetype {
    using init_type = init_info;
    using update_type = update_info;
    using target_type = target_info;
    archetype() = delete;
    archetype(archetype const&) = delete;
    void init(init_info const&);
    void start(target_info const&);
    void receive(update_info const&);
    void prepare();
    void commit() noexcept;
    void rollback() noexcept;
    void shutdown();
};
static_assert(TransferEngine<archetype, init_info, update_info>);
static_assert(AnyTransferEngine<archetype>);
static_assert(explain_transfer_engine<archetype>());
static_assert(explain_transfer_engine<archetype, init_info, update_info>());
static_assert(!TransferEngine<archetype, int, update_info>);
static_assert(!TransferEngine<archetype, init_info, int>);

struct without_init_type : archetype {
  private:
    using init_type = init_info;
};
struct without_update_type : archetype {
  private:
    using update_type = update_info;
};
struct without_target_type : archetype {
  private:
    using target_type = target_info;
};
struct without_init : archetype {
    void init() = delete;
};
struct another_init_type : archetype {
    using init_type = int;
    void init(int);
};
struct without_start : archetype {
    void start() {}
};
struct start_with_a_flag : archetype {
    void start(target_info const&, bool is_checkpoint_format = true);
};
struct start_with_a_flag_too : archetype {
    void start(target_info const&);
    void start(target_info const&, bool is_checkpoint_format);
};
struct a_flag_for_a_target : archetype {
    using target_type = bool;
    void start(bool is_checkpoint_format);
};
struct start_with_a_flag_only : archetype {
    void start(bool is_checkpoint_format);
};
struct without_receive : archetype {
    void receive() = delete;
};
struct receive_wants_to_write : archetype {
    void receive(update_info&);
};
struct without_prepare : archetype {
    void prepare() = delete;
};
struct prepare_with_an_argument : archetype {
    void prepare(int);
};
struct without_commit : archetype {
    void commit() noexcept = delete;
};
struct commit_may_throw : archetype {
    void commit();
};
struct without_rollback : archetype {
    void rollback() noexcept = delete;
};
struct rollback_may_throw : archetype {
    void rollback();
};
struct without_shutdown : archetype {
    void shutdown() = delete;
};

static_assert(!has_engine_types<without_init_type> && !has_engine_types<without_update_type>);
static_assert(!has_engine_types<without_target_type>);
static_assert(!has_init<without_init, init_info> && !has_init<another_init_type, init_info>);
static_assert(!has_start<without_start> && !has_start<start_with_a_flag_only>);
static_assert(!has_no_format_flag<start_with_a_flag> && !has_no_format_flag<start_with_a_flag_too>);
static_assert(!has_no_format_flag<a_flag_for_a_target>);
static_assert(!has_receive<without_receive, update_info> &&
              !has_receive<receive_wants_to_write, update_info>);
static_assert(!has_prepare<without_prepare> && !has_prepare<prepare_with_an_argument>);
static_assert(!has_commit<without_commit> && !has_commit<commit_may_throw>);
static_assert(!has_rollback<without_rollback> && !has_rollback<rollback_may_throw>);
static_assert(!has_shutdown<without_shutdown>);

// It is that atom alone, and the concept has it.
static_assert(has_start<start_with_a_flag> && !AnyTransferEngine<start_with_a_flag>);
static_assert(has_start<a_flag_for_a_target> && !AnyTransferEngine<a_flag_for_a_target>);
static_assert(has_commit<without_init> && !AnyTransferEngine<without_init>);
static_assert(has_no_format_flag<without_start> && !AnyTransferEngine<without_start>);
static_assert(has_start<without_receive> && !AnyTransferEngine<without_receive>);
static_assert(has_commit<without_prepare> && !AnyTransferEngine<without_prepare>);
static_assert(has_prepare<commit_may_throw> && !AnyTransferEngine<commit_may_throw>);
static_assert(has_commit<rollback_may_throw> && !AnyTransferEngine<rollback_may_throw>);
static_assert(has_rollback<without_shutdown> && !AnyTransferEngine<without_shutdown>);
static_assert(!AnyTransferEngine<without_target_type> && !AnyTransferEngine<int>);
static_assert(AnyTransferEngine<another_init_type>);

using dense = dense_engine<local_communicator, parameter_tables<>>;
static_assert(explain_transfer_engine<dense, group_init, dense_update>());
static_assert(explain_transfer_engine<any_engine>());

// --- what an engine may have beyond its lifecycle ---

struct announced_update {
    target_info const& target() const;
};
struct announcing : archetype {
    using update_type = announced_update;
    void receive(announced_update const&);
    announced_update next();
};
struct announces_without_target : archetype {
    update_info next();
};
struct announces_another_type : announcing {
    int next();
};
static_assert(has_announcements<announcing> && !has_announcements<archetype>);
static_assert(!has_announcements<announces_without_target> &&
              !has_announcements<announces_another_type>);
static_assert(explain_announcements<announcing>());
static_assert(explain_announcements<dense>());

struct refusing : archetype {
    void refuse(update_info const&, std::string const&);
};
static_assert(has_refusal<refusing> && has_refusal<dense> && !has_refusal<archetype>);

struct report_info {};
struct describing : archetype {
    void describe(report_info&) const;
};
struct describes_by_changing : archetype {
    void describe(report_info&);
};
static_assert(has_report<describing, report_info> && !has_report<archetype, report_info>);
static_assert(!has_report<describes_by_changing, report_info>);

struct interruptible : archetype {
    void interrupt() noexcept;
};
struct interrupt_may_throw : archetype {
    void interrupt();
};
static_assert(has_interrupt<interruptible> && has_interrupt<dense>);
static_assert(!has_interrupt<interrupt_may_throw> && !has_interrupt<archetype>);

// --- TrainerEngine ---

struct version_info {};
struct source_info {};

struct trainer_archetype {
    using init_type = init_info;
    using target_type = target_info;
    using version_type = version_info;
    trainer_archetype() = delete;
    trainer_archetype(trainer_archetype const&) = delete;
    void init(init_info const&);
    void announce(source_info&, version_info const&, target_info const&);
    void send(source_info&);
    void vote();
    version_info acknowledged() const;
    void shutdown();
};
static_assert(TrainerEngine<trainer_archetype, init_info, source_info>);
static_assert(explain_trainer_engine<trainer_archetype, init_info, source_info>());
static_assert(!TrainerEngine<trainer_archetype, init_info, int>);
static_assert(!TrainerEngine<trainer_archetype, int, source_info>);

struct without_preflight : trainer_archetype {
    void announce() = delete;
};
struct without_send : trainer_archetype {
    void send() = delete;
};
struct without_vote : trainer_archetype {
    void vote() = delete;
};
struct acknowledges_by_flag : trainer_archetype {
    bool acknowledged() const;
};
struct acknowledging_changes : trainer_archetype {
    version_info acknowledged();
};
struct trainer_without_shutdown : trainer_archetype {
    void shutdown() = delete;
};
static_assert(!has_announce<without_preflight, source_info>);
static_assert(!has_send<without_send, source_info>);
static_assert(!has_vote<without_vote>);
static_assert(!has_acknowledged<acknowledges_by_flag> && !has_acknowledged<acknowledging_changes>);
static_assert(!TrainerEngine<without_preflight, init_info, source_info>);
static_assert(!TrainerEngine<without_send, init_info, source_info>);
static_assert(!TrainerEngine<without_vote, init_info, source_info>);
static_assert(!TrainerEngine<acknowledges_by_flag, init_info, source_info>);
static_assert(!TrainerEngine<trainer_without_shutdown, init_info, source_info>);

using dense_sending = dense_trainer<local_communicator>;
static_assert(explain_trainer_engine<dense_sending, std::vector<group_init>, table_source<>>());
static_assert(has_groups<dense_sending> && has_wire_bytes<dense_sending>);
static_assert(has_failure_announcement<dense_sending>);
static_assert(!has_groups<trainer_archetype> && !has_wire_bytes<trainer_archetype>);

struct groups_of_names : trainer_archetype {
    std::size_t group_count() const;
    std::string group_name(std::size_t) const;
    int group_size(std::size_t) const;
    bool failure(std::size_t) const;
};
struct failure_announcement_may_throw : trainer_archetype {
    void announce_failure(std::string const&);
};
static_assert(!has_groups<groups_of_names>);
static_assert(!has_failure_announcement<failure_announcement_may_throw>);

}  // namespace
