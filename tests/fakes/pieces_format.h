// A format for tests, whose tensors may be tied, strided, chunked, or in other files. A .pieces file consists of lines:
//   NAME TYPE ROWS,COLUMNS STRIDES FILE:OFFSET:LENGTH...
// STRIDES is "-" for none, and "grid:BORDERS" for a grid. FILE is "." for the .pieces file itself. Lines are sorted by
// the offsets of their bytes in a file. A line "cut FILE:OFFSET:LENGTH" is a cut, and "hidden NAME BYTES WHY" a hidden
// tensor. The bytes after a line "data" are the file's own data.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "weft/model/format.h"

namespace weft::testing {

class PiecesFormat final : public Format {
 public:
  std::string_view name() const override { return "pieces"; }
  bool claims(std::string_view file_name, std::span<const std::byte> /*head*/) const override {
    return file_name.ends_with(".pieces");
  }

  Result<Layout> parse(FormatInput& files) const override {
    std::string text(files.main().size(), '\0');
    WEFT_CHECK(files.main().read(0, std::as_writable_bytes(std::span(text))));
    Layout layout;
    layout.format = name();
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line) && line != "data";) {
      if (line.starts_with("hidden ")) {
        layout.hidden.push_back(hidden_of(line));
        continue;
      }
      if (line.starts_with("cut ")) {
        WEFT_TRY(const TensorPart cut, part_of(std::string_view(line).substr(4), files, layout));
        layout.cuts.push_back(cut);
        continue;
      }
      WEFT_TRY(FoundTensor tensor, parse_line(line, files, layout));
      layout.tensors.push_back(std::move(tensor));
    }
    return layout;
  }

 private:
  static std::vector<std::uint64_t> numbers(std::string_view text, char between) {
    std::vector<std::uint64_t> out;
    if (text == "-") return out;
    for (const std::string_view one : split(text, between)) out.push_back(std::stoull(std::string(one)));
    return out;
  }

  static Result<FoundTensor> parse_line(const std::string& line, FormatInput& files, Layout& layout) {
    std::istringstream words(line);
    std::string type, shape, strides, part;
    FoundTensor tensor;
    words >> tensor.name >> type >> shape >> strides;
    const DTypeInfo* info = dtype_by_name(type);
    if (info == nullptr) return Error{Errc::invalid, "expected a type"};
    tensor.dtype = info->type;
    tensor.shape = numbers(shape, ',');
    constexpr std::string_view kGrid = "grid:";
    const bool boxed = strides.starts_with(kGrid);
    if (boxed) strides.erase(0, kGrid.size());
    (boxed ? tensor.grid : tensor.strides) = numbers(strides, ',');
    while (words >> part) {
      WEFT_TRY(const TensorPart placed, part_of(part, files, layout));
      tensor.parts.push_back(placed);
    }
    return tensor;
  }

  static HiddenTensor hidden_of(const std::string& line) {
    std::istringstream words(line);
    std::string keyword;
    HiddenTensor hidden;
    words >> keyword >> hidden.name >> hidden.bytes >> hidden.why;
    return hidden;
  }

  static Result<TensorPart> part_of(std::string_view text, FormatInput& files, Layout& layout) {
    const std::size_t colon = text.find(':');
    const auto range = numbers(text.substr(colon + 1), ':');
    WEFT_TRY(const std::uint32_t file, file_number(std::string(text.substr(0, colon)), files, layout));
    return TensorPart{file, range.at(0), range.at(1)};
  }

  static Result<std::uint32_t> file_number(const std::string& path, FormatInput& files, Layout& layout) {
    if (path == ".") return 0U;
    WEFT_CHECK(files.beside(path));
    const auto known = std::ranges::find(layout.others, path);
    const auto number = static_cast<std::uint32_t>(known - layout.others.begin()) + 1;
    if (known == layout.others.end()) layout.others.push_back(path);
    return number;
  }
};

inline Formats pieces_formats() {
  static const PiecesFormat format;
  static const Format* const all[] = {&format};
  return all;
}

}  // namespace weft::testing
