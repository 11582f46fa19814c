// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided tensors to dense bytes and back: the body that a grid of a GPU and a loop of the CPU run
// alike.

#include <weightcast/kernels/host_device.hpp>

namespace weightcast::kernels {

/// A strided tensor as runs of bytes that lie one after the other; dimensions outermost first,
/// counts and steps over whole runs. The host collapses what it can (strided_region.hpp).
struct strided_region {
    unsigned long long run_bytes;
    int rank;
    unsigned long long extent[8];
    unsigned long long stride[8];  ///< in bytes
};

/// Bytes [first, last) of the flattened tensor, byte `first` to or from `dense[0]`. Work is cut
/// into pieces of piece_bytes: a GPU takes 16, so that a thread moves one wide word; a CPU takes
/// all of it.
template <class Strided, class Dense>
struct transfer_arguments {
    strided_region region;
    Strided* strided;  ///< element 0 of the tensor
    Dense* dense;
    unsigned long long first;
    unsigned long long last;
    unsigned long long piece_bytes;
};
using pack_arguments = transfer_arguments<unsigned char const, unsigned char>;
using unpack_arguments = transfer_arguments<unsigned char, unsigned char const>;

namespace body {

using u64 = unsigned long long;

// Words of tensor memory, whatever its element type: hence no assumption about aliasing.
struct __attribute__((may_alias, aligned(16))) word16 {
    unsigned long long low;
    unsigned long long high;
};
typedef unsigned long long __attribute__((may_alias)) word8;
typedef unsigned int __attribute__((may_alias)) word4;
typedef unsigned short __attribute__((may_alias)) word2;

template <class Word>
WEIGHTCAST_HOST_DEVICE inline void copy_words(unsigned char* to, unsigned char const* from,
                                              u64 count) {
    for (u64 i = 0; i < count; ++i) {
        reinterpret_cast<Word*>(to)[i] = reinterpret_cast<Word const*>(from)[i];
    }
}

/// Contiguous bytes: the C library's copy on a CPU, the widest aligned words on a GPU.
WEIGHTCAST_HOST_DEVICE inline void copy_bytes(unsigned char* to, unsigned char const* from,
                                              u64 bytes) {
#ifdef __CUDA_ARCH__
    u64 const common = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes;
    if ((common & 15U) == 0)
        copy_words<word16>(to, from, bytes / 16);
    else if ((common & 7U) == 0)
        copy_words<word8>(to, from, bytes / 8);
    else if ((common & 3U) == 0)
        copy_words<word4>(to, from, bytes / 4);
    else if ((common & 1U) == 0)
        copy_words<word2>(to, from, bytes / 2);
    else
        copy_words<unsigned char>(to, from, bytes);
#else
    __builtin_memcpy(to, from, bytes);
#endif
}

/// Runs of one word each, at two steps of their own.
template <class Word>
WEIGHTCAST_HOST_DEVICE inline void copy_row(unsigned char* to, u64 to_step,
                                            unsigned char const* from, u64 from_step, u64 count) {
    for (u64 i = 0; i < count; ++i) {
        *reinterpret_cast<Word*>(to + i * to_step) =
            *reinterpret_cast<Word const*>(from + i * from_step);
    }
}

/// `count` runs, at two steps of their own; a run of one aligned word is moved as that word.
WEIGHTCAST_HOST_DEVICE inline void copy_runs(unsigned char* to, u64 to_step,
                                             unsigned char const* from, u64 from_step, u64 count,
                                             u64 run_bytes) {
    u64 const common =
        reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | to_step | from_step | run_bytes;
    bool const aligned = (common & (run_bytes - 1)) == 0;  // and run_bytes is a power of two
    if (run_bytes == 1) return copy_row<unsigned char>(to, to_step, from, from_step, count);
    if (aligned && run_bytes == 2) return copy_row<word2>(to, to_step, from, from_step, count);
    if (aligned && run_bytes == 4) return copy_row<word4>(to, to_step, from, from_step, count);
    if (aligned && run_bytes == 8) return copy_row<word8>(to, to_step, from, from_step, count);
    if (aligned && run_bytes == 16) return copy_row<word16>(to, to_step, from, from_step, count);
    for (u64 i = 0; i < count; ++i) copy_bytes(to + i * to_step, from + i * from_step, run_bytes);
}

/// Direction of a transfer: where bytes and runs go.
struct gather {
    WEIGHTCAST_HOST_DEVICE static void bytes(unsigned char const* strided, unsigned char* dense,
                                             u64 n) {
        copy_bytes(dense, strided, n);
    }
    WEIGHTCAST_HOST_DEVICE static void runs(unsigned char const* strided, u64 step,
                                            unsigned char* dense, u64 count, u64 run_bytes) {
        copy_runs(dense, run_bytes, strided, step, count, run_bytes);
    }
};
struct scatter {
    WEIGHTCAST_HOST_DEVICE static void bytes(unsigned char* strided, unsigned char const* dense,
                                             u64 n) {
        copy_bytes(strided, dense, n);
    }
    WEIGHTCAST_HOST_DEVICE static void runs(unsigned char* strided, u64 step,
                                            unsigned char const* dense, u64 count, u64 run_bytes) {
        copy_runs(strided, step, dense, run_bytes, count, run_bytes);
    }
};

/// A run of a region: its coordinates and its distance from element 0.
struct cursor {
    u64 coordinate[8];
    u64 offset;
};

WEIGHTCAST_HOST_DEVICE inline cursor locate(strided_region const& r, u64 run) {
    cursor c{};
    for (int d = r.rank; d-- > 0;) {
        c.coordinate[d] = run % r.extent[d];
        run /= r.extent[d];
        c.offset += c.coordinate[d] * r.stride[d];
    }
    return c;
}

/// Whole rows that are worth moving column by column: neighbouring rows lie closer together than
/// the runs of one row, as in a transposed matrix, and a cache line serves several of them.
WEIGHTCAST_HOST_DEVICE inline u64 rows_to_interleave(strided_region const& r, cursor const& c,
                                                     u64 left) {
    if (r.rank < 2 || c.coordinate[r.rank - 1] != 0) return 0;
    if (r.stride[r.rank - 2] >= r.stride[r.rank - 1]) return 0;
    u64 const fitting = left / (r.extent[r.rank - 1] * r.run_bytes);
    u64 const there = r.extent[r.rank - 2] - c.coordinate[r.rank - 2];
    return fitting < there ? fitting : there;
}
template <class Direction, class Strided, class Dense>
WEIGHTCAST_HOST_DEVICE inline void move_rows(strided_region const& r, Strided* strided,
                                             Dense* dense, u64 rows) {
    constexpr u64 columns = 32;  // their cache lines fit the first-level cache twice over
    u64 const row_runs = r.extent[r.rank - 1];
    u64 const step = r.stride[r.rank - 1];
    for (u64 column = 0; column < row_runs; column += columns) {
        u64 const count = row_runs - column < columns ? row_runs - column : columns;
        for (u64 row = 0; row < rows; ++row) {
            Direction::runs(strided + row * r.stride[r.rank - 2] + column * step, step,
                            dense + (row * row_runs + column) * r.run_bytes, count, r.run_bytes);
        }
    }
}

/// Goes that many runs on in dimension d, at most to its end.
WEIGHTCAST_HOST_DEVICE inline void advance(strided_region const& r, cursor& c, int d, u64 count) {
    if (d < 0) return;
    c.coordinate[d] += count;
    c.offset += count * r.stride[d];
    while (d > 0 && c.coordinate[d] == r.extent[d]) {
        c.offset -= r.extent[d] * r.stride[d];
        c.coordinate[d] = 0;
        --d;
        ++c.coordinate[d];
        c.offset += r.stride[d];
    }
}

/// Moves bytes [first, last) of the flattened tensor.
template <class Direction, class Strided, class Dense>
WEIGHTCAST_HOST_DEVICE inline void move_range(strided_region const& r, Strided* strided,
                                              Dense* dense, u64 first, u64 last) {
    int const row = r.rank - 1;
    cursor c = locate(r, first / r.run_bytes);
    u64 const into = first % r.run_bytes;
    u64 left = last - first;
    if (into != 0) {  // the end of a run that was cut
        u64 const rest = r.run_bytes - into;
        u64 const part = rest < left ? rest : left;
        Direction::bytes(strided + c.offset + into, dense, part);
        dense += part;
        left -= part;
        advance(r, c, row, 1);
    }
    while (left >= r.run_bytes) {
        u64 moved = 1;
        if (u64 const rows = rows_to_interleave(r, c, left); rows > 1) {
            move_rows<Direction>(r, strided + c.offset, dense, rows);
            moved = rows * r.extent[row];
            advance(r, c, row - 1, rows);
        } else {
            u64 const in_row = row < 0 ? 1 : r.extent[row] - c.coordinate[row];
            u64 const fitting = left / r.run_bytes;
            moved = in_row < fitting ? in_row : fitting;
            if (moved == 1)
                Direction::bytes(strided + c.offset, dense, r.run_bytes);
            else
                Direction::runs(strided + c.offset, r.stride[row], dense, moved, r.run_bytes);
            advance(r, c, row, moved);
        }
        dense += moved * r.run_bytes;
        left -= moved * r.run_bytes;
    }
    if (left != 0)
        Direction::bytes(strided + c.offset, dense, left);  // the start of a run that is cut
}

template <class Direction, class Arguments>
WEIGHTCAST_HOST_DEVICE inline void move_pieces(Arguments const& a, u64 index, u64 stride) {
    u64 const bytes = a.last - a.first;
    for (u64 piece = index; piece * a.piece_bytes < bytes; piece += stride) {
        u64 const begin = piece * a.piece_bytes;
        u64 const end = bytes - begin < a.piece_bytes ? bytes : begin + a.piece_bytes;
        move_range<Direction>(a.region, a.strided, a.dense + begin, a.first + begin, a.first + end);
    }
}

}  // namespace body

/// Pieces index, index + stride, ... of a strided tensor to dense bytes. Cost: each byte once.
WEIGHTCAST_HOST_DEVICE inline void pack_body(pack_arguments const& a, unsigned long long index,
                                             unsigned long long stride) {
    body::move_pieces<body::gather>(a, index, stride);
}

/// Pieces index, index + stride, ... of dense bytes to a strided tensor. Cost: each byte once.
WEIGHTCAST_HOST_DEVICE inline void unpack_body(unpack_arguments const& a, unsigned long long index,
                                               unsigned long long stride) {
    body::move_pieces<body::scatter>(a, index, stride);
}

}  // namespace weightcast::kernels
