// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The run-time face of engines: one type for all of them, chosen by name, driven by requests.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/detail/type_name.hpp>
#include <weightcast/engine/erased_value.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

namespace detail {

/// What an erased engine says of its open update; the members are those that engines describe.
struct erased_report {
    enum class outcome { updated, nothing_updated };
    outcome status = outcome::nothing_updated;
    target_id target{};
    weight_version version{};
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> not_covered{};
    std::vector<std::string> unknown{};
    std::uint64_t held_bytes = 0;
};

class erased_engine {
  public:
    virtual ~erased_engine() = default;
    virtual void init(any_init const& init) = 0;
    virtual void start(target_id const& target) = 0;
    virtual void receive(any_update const& update) = 0;
    virtual void refuse(any_update const& update, std::string const& reason) = 0;
    virtual any_update next() = 0;
    virtual void prepare() = 0;
    virtual void commit() noexcept = 0;
    virtual void rollback() noexcept = 0;
    virtual void shutdown() = 0;
    virtual void interrupt() noexcept = 0;
    virtual void describe(erased_report& report) const = 0;
    virtual std::optional<std::string> commit_failure() const = 0;
    virtual std::type_info const& type() const noexcept = 0;
    virtual void* get() noexcept = 0;
};

template <class E>
class engine_model final : public erased_engine {
  public:
    template <class... Args>
    explicit engine_model(std::in_place_t, Args&&... args) : engine_(std::forward<Args>(args)...) {}

    void init(any_init const& init) override {
        engine_.init(init.get<typename E::init_type>(saying("init")));
    }
    void start(target_id const& target) override {
        engine_.start(target);
        open_ = target;
    }
    void receive(any_update const& update) override {
        engine_.receive(update.get<typename E::update_type>(saying("receive")));
    }
    void refuse(any_update const& update, std::string const& reason) override {
        if constexpr (has_refusal<E>)
            engine_.refuse(update.get<typename E::update_type>(saying("refuse")), reason);
    }
    any_update next() override {
        if constexpr (has_announcements<E>)
            return engine_.next();
        else
            throw lifecycle_error{saying("next") +
                                  " waits for no announcements: it is driven by requests"};
    }
    void prepare() override { engine_.prepare(); }
    void commit() noexcept override { engine_.commit(); }
    void rollback() noexcept override { engine_.rollback(); }
    void shutdown() override { engine_.shutdown(); }
    void interrupt() noexcept override {
        if constexpr (has_interrupt<E>) engine_.interrupt();
    }
    void describe(erased_report& report) const override {
        report.target = open_;
        if constexpr (has_report<E, erased_report>)
            engine_.describe(report);
        else
            report.status = erased_report::outcome::updated;
    }
    std::optional<std::string> commit_failure() const override {
        if constexpr (has_commit_failure<E>) return engine_.commit_failure();
        return std::nullopt;
    }
    std::type_info const& type() const noexcept override { return typeid(E); }
    void* get() noexcept override { return &engine_; }

  private:
    static std::string saying(char const* request) {
        return std::string{request} + ": engine " + readable_name(typeid(E));
    }
    E engine_;
    target_id open_{};
};

}  // namespace detail

/// Any engine whose targets are `target_id`s. A TransferEngine itself: weight_worker and rpc_worker take it.
/// Moves; moved from it is empty: each call throws lifecycle_error, `commit`, `rollback` and `interrupt` do
/// nothing. What an engine does not have beyond the lifecycle does nothing here, but for `next`, which throws.
/// Cost: one virtual call a step; none on the data path.
class any_engine {
  public:
    using init_type = any_init;
    using update_type = any_update;
    using target_type = target_id;
    using version_type = weight_version;

    template <AnyTransferEngine E>
        requires(!std::same_as<E, any_engine> && std::same_as<typename E::target_type, target_id>)
    explicit any_engine(E engine) : any_engine{std::in_place_type<E>, std::move(engine)} {}
    /// Makes the engine in place: it need not move.
    template <AnyTransferEngine E, class... Args>
        requires std::same_as<typename E::target_type, target_id>
    explicit any_engine(std::in_place_type_t<E>, Args&&... args)
        : engine_{std::make_unique<detail::engine_model<E>>(std::in_place,
                                                            std::forward<Args>(args)...)} {}
    template <class E>
        requires(!std::same_as<E, any_engine> && !AnyTransferEngine<E>)
    explicit any_engine(E const&) {
        static_assert(explain_transfer_engine<E>());
    }

    /// @throws bad_argument  for an init of another type than the engine's, naming both; else what it throws
    void init(any_init const& init) { engine().init(init); }
    void start(target_id const& target) { engine().start(target); }
    /// @throws bad_argument  for an update of another type than the engine's, naming both; nothing was received
    void receive(any_update const& update) { engine().receive(update); }
    /// Answers an announcement with an objection, where the engine can.
    void refuse(any_update const& update, std::string const& reason) {
        engine().refuse(update, reason);
    }
    /// @throws lifecycle_error  for an engine that waits for no announcements
    any_update next() { return engine().next(); }
    void prepare() { engine().prepare(); }
    void commit() noexcept {
        if (engine_) engine_->commit();
    }
    void rollback() noexcept {
        if (engine_) engine_->rollback();
    }
    void shutdown() { engine().shutdown(); }
    /// Any thread. Ends the running call of an engine that can be interrupted.
    void interrupt() noexcept {
        if (engine_) engine_->interrupt();
    }
    template <class Report>
    void describe(Report& report) const {
        detail::erased_report erased;
        engine().describe(erased);
        report.target = std::move(erased.target);
        report.version = std::move(erased.version);
        report.tensors = erased.tensors;
        report.bytes = erased.bytes;
        report.not_covered = std::move(erased.not_covered);
        report.unknown = std::move(erased.unknown);
        report.held_bytes = erased.held_bytes;
        if (erased.status == detail::erased_report::outcome::updated) {
            report.status = decltype(report.status)::updated;
        }
    }

    std::optional<std::string> commit_failure() const { return engine().commit_failure(); }

    /// The engine when its type is E, else null.
    template <class E>
    E* get_if() noexcept {
        return engine_ && engine_->type() == typeid(E) ? static_cast<E*>(engine_->get()) : nullptr;
    }
    /// The type of the engine; "nothing" when empty.
    std::string type_name() const {
        return engine_ ? detail::readable_name(engine_->type()) : "nothing";
    }

  private:
    detail::erased_engine& engine() const {
        if (!engine_) throw lifecycle_error{"this any_engine is empty: it was moved from"};
        return *engine_;
    }
    std::unique_ptr<detail::erased_engine> engine_;
};
static_assert(AnyTransferEngine<any_engine>);

}  // namespace weightcast
