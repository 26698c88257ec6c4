// Measures how far tensors moved between two versions. This is the only part of a diff that reads tensor data.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>

#include "base/floats.h"
#include "base/thread_pool.h"
#include "os/sys.h"
#include "reading/open_file.h"
#include "weft/programs/operations.h"

namespace weft {
namespace {

constexpr std::size_t kPieceElements = 1U << 18U;

// A changed tensor that can be measured on both sides.
struct Pair {
  std::size_t change = 0;  // index into ManifestDiff::tensors
  const Tensor* before = nullptr;
  const Tensor* after = nullptr;
  OpenPlace at_before, at_after;
  std::uint64_t elements = 0;
};

// A run of elements of one pair, and its measured sums.
struct Piece {
  std::size_t pair = 0;
  std::uint64_t first = 0;
  std::size_t count = 0;
  double before = 0, difference = 0;  // sums of squares
  double largest = 0;
  std::uint64_t not_finite = 0;
};

std::size_t element_bytes(const Tensor& tensor) {
  return dtype_info(tensor.dtype)->block_bytes;
}

class Measurement {
 public:
  Measurement(Store& store, const DiffSides& sides, const ManifestDiff& diff, Progress& progress)
      : store_(store), sides_(sides), diff_(diff), progress_(progress) {}

  Result<Norms> run() {
    WEFT_CHECK(find_pairs());
    progress_.phase("reading changed tensors");
    progress_.total(bytes_total_);
    ThreadPool pool(0);
    pool.parallel_for(pieces_.size(), [this](std::size_t i) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (Status measured = measure(pieces_[i]); !measured.ok()) fail(std::move(measured).error());
    });
    WEFT_CHECK(std::move(status_));
    return sums();
  }

 private:
  Result<OpenPlace> place(const File& file, const Tensor& tensor) {
    WEFT_TRY(auto places, open_blobs(store_, std::span(&file.extents[tensor.extent].id, 1)));
    return std::move(places.front());
  }

  Status find_pairs() {
    for (std::size_t i = 0; i < diff_.tensors.size(); ++i) {
      const TensorChange& one = diff_.tensors[i];
      if (one.change != Change::changed) continue;
      const File& a = sides_.before.files[one.before->file];
      const File& b = sides_.after.files[one.after->file];
      Pair pair{i, &a.tensors[one.before->tensor], &b.tensors[one.after->tensor], {}, {}, 0};
      pair.elements = element_count(pair.before->shape).value_or(0);
      if (!measurable(*pair.before) || !measurable(*pair.after) || pair.before->shape != pair.after->shape) continue;
      WEFT_TRY(pair.at_before, place(a, *pair.before));
      WEFT_TRY(pair.at_after, place(b, *pair.after));
      add_pieces(pair);
      pairs_.push_back(std::move(pair));
    }
    return {};
  }

  static bool measurable(const Tensor& tensor) {
    return is_float(tensor.dtype) && tensor.descr.empty() && tensor.extent != kNoExtent;
  }

  void add_pieces(const Pair& pair) {
    for (std::uint64_t first = 0; first < pair.elements; first += kPieceElements) {
      Piece& piece = pieces_.emplace_back();
      piece.pair = pairs_.size();
      piece.first = first;
      piece.count = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceElements, pair.elements - first));
    }
    bytes_total_ += pair.elements * (element_bytes(*pair.before) + element_bytes(*pair.after));
  }

  Status read(const Tensor& tensor, const OpenPlace& place, const Piece& piece, std::vector<double>& out) {
    std::vector<std::byte> bytes(piece.count * element_bytes(tensor));
    const std::uint64_t offset = place.offset + piece.first * element_bytes(tensor);
    WEFT_CHECK(read_exact(place.pack->fd(), offset, bytes, tensor.name));
    out.resize(piece.count);
    to_doubles(tensor.dtype, bytes, out);
    progress_.advance(bytes.size());
    return {};
  }

  Status measure(Piece& piece) {
    if (progress_.cancelled()) return Error{Errc::cancelled, "interrupted"};
    const Pair& pair = pairs_[piece.pair];
    std::vector<double> before, after;
    WEFT_CHECK(read(*pair.before, pair.at_before, piece, before));
    WEFT_CHECK(read(*pair.after, pair.at_after, piece, after));
    for (std::size_t i = 0; i < piece.count; ++i) {
      if (!std::isfinite(before[i]) || !std::isfinite(after[i])) {
        ++piece.not_finite;
        continue;
      }
      const double moved = after[i] - before[i];
      piece.before += before[i] * before[i];
      piece.difference += moved * moved;
      piece.largest = std::max(piece.largest, std::abs(moved));
    }
    return {};
  }

  // Adds up the pieces in their order, so that the sums do not depend on the scheduling of threads.
  Norms sums() const {
    std::vector<ChangeNorms> by_pair(pairs_.size());
    for (const Piece& piece : pieces_) {
      ChangeNorms& norms = by_pair[piece.pair];
      norms.before += piece.before;
      norms.difference += piece.difference;
      norms.largest = std::max(norms.largest, piece.largest);
      norms.not_finite += piece.not_finite;
    }
    Norms out(diff_.tensors.size());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      by_pair[i].before = std::sqrt(by_pair[i].before);
      by_pair[i].difference = std::sqrt(by_pair[i].difference);
      out[pairs_[i].change] = by_pair[i];
    }
    return out;
  }

  void fail(Error error) {
    const std::lock_guard lock(mutex_);
    if (status_.ok()) status_ = std::move(error);
    stop_.store(true, std::memory_order_relaxed);
  }

  Store& store_;
  const DiffSides& sides_;
  const ManifestDiff& diff_;
  Progress& progress_;
  std::vector<Pair> pairs_;
  std::vector<Piece> pieces_;
  std::uint64_t bytes_total_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  Status status_;  // guarded by mutex_ while threads run
};

}  // namespace

Result<Norms> measure_norms(Store& store, const DiffSides& sides, const ManifestDiff& diff, Progress& progress) {
  return Measurement(store, sides, diff, progress).run();
}

}  // namespace weft
