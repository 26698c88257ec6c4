// Tensors in boxes, from the boxes that a format finds to the bytes that a reader gets.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "format/boxes.h"
#include "publish/cut.h"
#include "random_runs.h"
#include "reading/gathered_file.h"
#include "reading/open_file.h"
#include "weft/model/manifest.h"

namespace weft::testing {
namespace {

// A tensor as its reader sees it, and its boxes.
struct Whole {
  FoundTensor found;  // without parts
  std::string elements;
  std::vector<TensorBox> boxes;    // in any order, without places
  std::vector<std::string> bytes;  // of each box
};

// Random tensors in boxes. Their boxes lie in random order in a few files, and some of them touch.
class RandomLayouts {
 public:
  explicit RandomLayouts(std::uint64_t seed) : random_(seed) {}

  void step() {
    files_.assign(1 + below(3), "");
    std::vector<Whole> tensors;
    for (std::uint64_t i = 0; i < 1 + below(3); ++i) tensors.push_back(make(fmt::format("t{}", i)));
    write(tensors);
    const Manifest manifest = publish(tensors);
    for (const Whole& whole : tensors) check(manifest, whole);
  }

  void finish() const {
    CHECK(gridded_ > 0);
    CHECK(in_order_ > 0);
    CHECK(united_ > 0);
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }

  std::string noise(std::uint64_t length) {
    std::string out(length, '\0');
    for (char& one : out) one = static_cast<char>(random_());
    return out;
  }

  Whole make(const std::string& name) {
    constexpr DType kTypes[] = {DType::u8, DType::f16, DType::f64};
    Whole out;
    out.found.name = name;
    out.found.dtype = kTypes[below(3)];
    out.boxes.resize(1);
    for (std::uint64_t n = 1 + below(3); n > 0; --n) {
      out.found.shape.push_back(1 + below(7));
      cut_dimension(out.boxes, out.found.shape.back());
    }
    out.elements = noise(must(tensor_bytes(out.found.dtype, out.found.shape)));
    std::ranges::shuffle(out.boxes, random_);
    for (const TensorBox& box : out.boxes) out.bytes.push_back(bytes_of(out, box));
    return out;
  }

  void cut_dimension(std::vector<TensorBox>& boxes, std::uint64_t length) {
    std::vector<std::uint64_t> ends{0};
    while (ends.back() < length) ends.push_back(ends.back() + 1 + below(5));
    std::vector<TensorBox> longer;
    for (const TensorBox& box : boxes)
      for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
        longer.push_back(box);
        longer.back().begin.push_back(ends[i]);
        longer.back().size.push_back(ends[i + 1] - ends[i]);
      }
    boxes = std::move(longer);
  }

  // Copies element by element.
  std::string bytes_of(const Whole& whole, const TensorBox& box) {
    const std::uint64_t unit = dtype_info(whole.found.dtype)->block_bytes;
    std::string out = noise(*box_bytes(whole.found.dtype, box));
    for (std::uint64_t i = 0; i * unit < out.size(); ++i) {
      std::uint64_t rest = i, at = 0, step = 1;
      bool inside = true;
      for (std::size_t k = box.size.size(); k-- > 0; rest /= box.size[k]) {
        const std::uint64_t index = box.begin[k] + rest % box.size[k];
        inside = inside && index < whole.found.shape[k];
        at += index * step;
        step *= whole.found.shape[k];
      }
      if (inside) std::memcpy(&out[i * unit], &whole.elements[at * unit], unit);
    }
    return out;
  }

  // Puts all boxes into files: one after the other, or with bytes between them.
  void write(std::vector<Whole>& tensors) {
    std::vector<std::pair<std::size_t, std::size_t>> order;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      for (std::size_t k = 0; k < tensors[i].boxes.size(); ++k) order.emplace_back(i, k);
    if (below(2) == 0) std::ranges::shuffle(order, random_);
    const std::uint64_t gap_of = 1 + below(4);
    for (const auto& [i, k] : order) {
      const auto file = static_cast<std::uint32_t>(below(files_.size()));
      if (below(gap_of) > 0) files_[file] += noise(below(9));
      tensors[i].boxes[k].file = file;
      tensors[i].boxes[k].offset = files_[file].size();
      files_[file] += tensors[i].bytes[k];
    }
  }

  Manifest publish(std::vector<Whole>& tensors) {
    PartFiles numbers;
    Manifest manifest;
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      numbers.push_back(i);
      File& file = manifest.files.emplace_back();
      file.path = fmt::format("f{}", i);
      file.size = files_[i].size();
    }
    std::vector<std::vector<Range>> runs(files_.size());
    for (Whole& whole : tensors) {
      must(place_boxes(whole.found, whole.boxes));
      add_runs(whole.found, numbers, runs);
    }
    for (std::size_t i = 0; i < files_.size(); ++i) {
      runs[i] = must(cut_file(files_[i].size(), runs[i]));
      for (const Range& range : runs[i]) manifest.files[i].extents.push_back({range.offset, {range.length, {}}});
    }
    std::vector<Tensor>& placed = manifest.files[0].tensors;
    for (const Whole& whole : tensors) placed.push_back(place_tensor(whole.found, numbers, runs));
    std::ranges::stable_sort(placed, {}, &Tensor::extent);
    for (const Tensor& tensor : placed) {
      ++(tensor.grid.empty() ? in_order_ : gridded_);
      if (tensor.runs.size() == 1) ++united_;
    }
    Manifest again = must(decode_manifest(must(encode_manifest(manifest))));
    CHECK(again == manifest);
    return again;
  }

  void check(const Manifest& manifest, const Whole& whole) {
    const std::vector<Tensor>& all = manifest.files[0].tensors;
    const Tensor& tensor = *std::ranges::find(all, whole.found.name, &Tensor::name);
    GatheredTensor gathered;
    gathered.shape = tensor.shape;
    gathered.element_bytes = dtype_info(tensor.dtype)->block_bytes;
    if (!tensor.grid.empty()) gathered.grid = must(Grid::of(tensor.dtype, tensor.shape, tensor.grid));
    std::vector<std::shared_ptr<OpenFile>> open;
    for (const std::string& bytes : files_) open.push_back(open_text(bytes));
    const auto add = [&](std::uint32_t file, std::uint32_t extent, Range run) {
      gathered.add(open[file], {manifest.files[file].extents[extent].offset + run.offset, run.length});
    };
    for (const TensorRun& run : tensor.runs) add(run.file, run.extent, {run.offset, run.length});
    if (tensor.extent != kNoExtent) add(0, tensor.extent, {0, whole.elements.size()});
    const auto file = open_gathered(std::move(gathered));
    REQUIRE(file->size() == whole.elements.size());
    CHECK(read(*file, 0, whole.elements.size() + 9) == whole.elements);
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t offset = below(whole.elements.size()), length = 1 + below(40);
      CHECK(read(*file, offset, length) == whole.elements.substr(offset, length));
    }
  }

  static std::string read(OpenFile& file, std::uint64_t offset, std::uint64_t length) {
    std::string out(length, '\0');
    out.resize(must(file.read(offset, std::as_writable_bytes(std::span(out)))));
    return out;
  }

  std::mt19937_64 random_;
  std::vector<std::string> files_;
  std::uint64_t gridded_ = 0, in_order_ = 0, united_ = 0;  // tensors; with one run
};

TEST_CASE("random boxes in files of random places read as their tensors") {
  run_rounds<RandomLayouts>(300);
}

}  // namespace
}  // namespace weft::testing
