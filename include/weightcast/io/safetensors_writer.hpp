// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// Writes safetensors files: in full or not at all, without a second copy of the weights in memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <boost/json/serialize.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/io/atomic_file.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/safetensors_dtype.hpp>
#include <weightcast/io/safetensors_header.hpp>
#include <weightcast/kernels/pack.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast {

namespace detail {

inline std::string json_string(std::string_view text) {
    return boost::json::serialize(boost::json::string_view{text.data(), text.size()});
}

/// The given order where it leaves every tensor aligned to its elements, else by item size, largest
/// first.
inline void order_for_alignment(std::vector<named_view<host_space>>& tensors) {
    std::uint64_t offset = 0;
    bool aligned = true;
    for (auto const& t : tensors) {
        aligned = aligned && offset % item_size(t.tensor.type()) == 0;
        offset = checked_add(offset, t.tensor.bytes());
    }
    if (aligned) return;
    std::ranges::stable_sort(tensors, std::ranges::greater{},
                             [](auto const& t) { return item_size(t.tensor.type()); });
}

inline void append_entry(std::string& header, named_view<host_space> const& t,
                         std::uint64_t begin) {
    auto const type = t.tensor.type();
    header += json_string(t.name) + R"(:{"dtype":")" + std::string{safetensors_name(type)} +
              R"(","shape":[)";
    std::string separator;
    for (auto const extent : shape_to_safetensors(type, t.tensor.shape())) {
        header += std::exchange(separator, ",") + std::to_string(extent);
    }
    header += R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(begin + t.tensor.bytes()) + "]}";
}

/// The header's text, padded so that the data behind it is aligned.
inline std::string header_text(std::span<named_view<host_space> const> tensors,
                               safetensors_metadata const& metadata) {
    std::string header = "{";
    if (!metadata.empty()) {
        std::string separator;
        header += R"("__metadata__":{)";
        for (auto const& [key, value] : metadata) {
            header += std::exchange(separator, ",") + json_string(key) + ":" + json_string(value);
        }
        header += "}";
    }
    std::uint64_t offset = 0;
    for (auto const& t : tensors) {
        if (header.size() > 1) header += ",";
        append_entry(header, t, offset);
        offset += t.tensor.bytes();
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return header;
}

inline void check_names(std::span<named_view<host_space> const> tensors) {
    std::unordered_set<std::string_view> names;
    for (auto const& t : tensors) {
        if (t.name == "__metadata__") throw bad_argument{"no tensor may be named '__metadata__'"};
        if (!names.insert(t.name).second) {
            throw bad_argument{"the name " + in_quotes(t.name) + " comes twice"};
        }
    }
}

/// Header checks, done by the reader's own code: what cannot be read back is never written.
inline void check_readable(std::string const& header,
                           std::span<named_view<host_space> const> tensors,
                           std::filesystem::path const& path) {
    if (header.size() > safetensors_header_limit) {
        throw bad_argument{"a header of " + std::to_string(header.size()) +
                           " bytes is over the limit of " +
                           std::to_string(safetensors_header_limit)};
    }
    std::uint64_t bytes = 0;
    for (auto const& t : tensors) bytes += t.tensor.bytes();
    try {
        static_cast<void>(read_safetensors_header(header, bytes, in_quotes(path.native())));
    } catch (bad_input const& e) {
        throw bad_argument{std::string{"it could not be read back: "} + e.what()};
    }
}

inline void write_elements(atomic_file& file, const_tensor_view<host_space> const& tensor) {
    auto const bytes = tensor.bytes();
    if (tensor.contiguous()) {
        return file.write(
            {static_cast<std::byte const*>(tensor.data()), static_cast<std::size_t>(bytes)});
    }
    std::vector<std::byte> packed(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, 1U << 20U)));
    for (std::uint64_t first = 0; first < bytes; first += packed.size()) {
        auto const last = std::min<std::uint64_t>(bytes, first + packed.size());
        pack(tensor, first, last, packed.data());
        file.write(std::span{packed}.first(static_cast<std::size_t>(last - first)));
    }
}

}  // namespace detail

/// Writes the tensors to `path`; a file that is there is replaced once the new one is complete and
/// on disk. The given order is kept if it leaves every tensor aligned to its elements; otherwise
/// larger elements come first. Strided tensors are packed through 1 MiB.
/// @throws bad_argument    for a name that comes twice, is no UTF-8 or is `__metadata__`, and for a
///                         tensor that the format cannot describe; nothing was written
/// @throws system_failure  when the disk is full or the folder cannot be written; `path` is as it
///                         was
template <std::ranges::input_range Tensors>
    requires NamedHostTensor<std::ranges::range_value_t<Tensors>>
void write_safetensors(std::filesystem::path const& path, Tensors&& tensors,
                       safetensors_metadata const& metadata = {}) {
    std::vector<named_view<host_space>> sorted;
    for (auto const& t : tensors) sorted.push_back({t.name, view_of(t.tensor)});
    detail::check_names(sorted);
    detail::order_for_alignment(sorted);
    auto const header = detail::header_text(sorted, metadata);
    detail::check_readable(header, sorted, path);

    atomic_file file{path};
    std::uint64_t const length = header.size();
    file.write(std::as_bytes(std::span{&length, 1}));
    file.write(std::as_bytes(std::span{header}));
    for (auto const& t : sorted) detail::write_elements(file, t.tensor);
    file.commit();
}

}  // namespace weightcast
