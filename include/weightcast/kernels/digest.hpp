// SPDX-License-Identifier: Apache-2.0
#pragma once
// XXH3 digests of host memory, in one go or piece by piece.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <weightcast/kernels/xxh3_body.hpp>

namespace weightcast {

/// XXH3_64bits (seed 0) of the bytes. Cost: each byte read once.
inline std::uint64_t xxh3_64(std::span<std::byte const> bytes) noexcept {
    return kernels::xxh3_64_of(reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size());
}

/// XXH3_64bits (seed 0) of bytes that come in pieces, however they are cut. Copies are independent.
class digest_state {
  public:
    /// Takes more bytes in. Cost: each byte read once; small pieces are copied to a buffer of 256
    /// bytes.
    void update(std::span<std::byte const> bytes) noexcept {
        auto const* const data = reinterpret_cast<unsigned char const*>(bytes.data());
        total_ += bytes.size();
        if (buffered_ + bytes.size() > buffer_.size()) return consume(data, bytes.size());
        if (!bytes.empty()) std::memcpy(buffer_.data() + buffered_, data, bytes.size());
        buffered_ += bytes.size();
    }
    /// The digest of all bytes so far; more may follow.
    std::uint64_t value() const noexcept {
        using namespace kernels;
        if (total_ <= xxh3::short_bytes) return xxh3::hash_short(buffer_.data(), total_);
        running end = running_;
        if (buffered_ >= xxh3::stripe_bytes) {
            end.consume(buffer_.data(), (buffered_ - 1) / xxh3::stripe_bytes);
            return xxh3::finish(end.lanes, buffer_.data() + buffered_ - xxh3::stripe_bytes, total_);
        }
        std::array<unsigned char, xxh3::stripe_bytes>
            last{};  // the end of what was consumed, then the rest
        auto const missing = last.size() - buffered_;
        std::memcpy(last.data(), buffer_.data() + buffer_.size() - missing, missing);
        std::memcpy(last.data() + missing, buffer_.data(), buffered_);
        return xxh3::finish(end.lanes, last.data(), total_);
    }

  private:
    struct running {
        kernels::xxh3_accumulators lanes = kernels::xxh3::start();
        std::uint64_t in_block = 0;  // stripes of the current block so far

        void consume(unsigned char const* data, std::uint64_t stripes) noexcept {
            using namespace kernels;
            while (stripes != 0) {
                auto const now = std::min<std::uint64_t>(xxh3::block_stripes - in_block, stripes);
                xxh3::accumulate(lanes, data, now, xxh3::secret() + 8 * in_block);
                data += now * xxh3::stripe_bytes;
                stripes -= now;
                in_block += now;
                if (in_block == xxh3::block_stripes) {
                    xxh3::scramble(lanes);
                    in_block = 0;
                }
            }
        }
    };

    // Leaves at least one byte unconsumed: the last stripe of an input is taken in another way.
    // Not inlined: for small pieces of known size g++ 12 would warn of reads that cannot happen.
    [[gnu::noinline]] void consume(unsigned char const* data, std::size_t left) noexcept {
        constexpr std::size_t stripe = kernels::xxh3::stripe_bytes;
        if (buffered_ != 0) {
            auto const room = buffer_.size() - buffered_;
            std::memcpy(buffer_.data() + buffered_, data, room);
            running_.consume(buffer_.data(), buffer_.size() / stripe);
            data += room;
            left -= room;
        }
        if (left > buffer_.size()) {
            auto const stripes = (left - 1) / stripe;
            running_.consume(data, stripes);
            data += stripes * stripe;
            left -= stripes * stripe;
            // value() may need the end of what was consumed
            std::memcpy(buffer_.data() + buffer_.size() - stripe, data - stripe, stripe);
        }
        std::memcpy(buffer_.data(), data, left);
        buffered_ = left;
    }

    running running_{};
    std::array<unsigned char, 256> buffer_{};
    std::size_t buffered_ = 0;
    std::uint64_t total_ = 0;
};

/// A digest as people read it: 16 hex digits.
inline std::string digest_text(std::uint64_t digest) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; digest >>= 4U) text[i] = digits[digest & 15U];
    return text;
}

}  // namespace weightcast
