#include "bundle/tar_writer.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "format/tar_header.h"

namespace weft {
namespace {

constexpr std::uint64_t kUstarSizeMax = (1ULL << 33U) - 1;  // eleven octal digits
constexpr std::size_t kEndBlocks = 2;                       // of zeros

// Returns "LENGTH KEY=VALUE\n", whose length counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (length != rest + std::to_string(length).size()) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

void put(std::span<std::byte> block, std::size_t at, std::string_view text) {
  std::ranges::copy(std::as_bytes(std::span(text)), block.subspan(at).begin());
}

}  // namespace

void TarWriter::pad() {
  const std::uint64_t over = (at_ + out_.size()) % kTarBlock;
  if (over != 0) out_.resize(out_.size() + kTarBlock - over);
}

void TarWriter::header(std::string_view name, std::uint64_t size, char type) {
  std::array<std::byte, kTarBlock> block{};
  put(block, 0, name);
  put(block, 100, "0000644");
  put(block, 108, "0000000");
  put(block, 116, "0000000");
  put(block, 124, fmt::format("{:011o}", size));
  put(block, 136, fmt::format("{:011o}", std::min(time_s_, kUstarSizeMax)));
  put(block, 148, "        ");
  put(block, 156, std::string_view(&type, 1));
  put(block, 257, std::string_view("ustar\00000", 8));
  unsigned sum = 0;
  for (const std::byte byte : block) sum += static_cast<unsigned>(byte);
  put(block, 148, fmt::format("{:06o}", sum));
  block[154] = std::byte{0};
  out_.insert(out_.end(), block.begin(), block.end());
}

std::span<const std::byte> TarWriter::begin(std::string_view name, std::uint64_t size) {
  out_.clear();
  pad();
  if (size > kUstarSizeMax) {
    const std::string record = pax_record("size", std::to_string(size));
    header("pax", record.size(), 'x');
    const auto bytes = std::as_bytes(std::span(record));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    pad();
  }
  header(name, size > kUstarSizeMax ? 0 : size, '0');
  at_ += out_.size();
  return out_;
}

std::span<const std::byte> TarWriter::end() {
  out_.clear();
  pad();
  out_.resize(out_.size() + kEndBlocks * kTarBlock);
  at_ += out_.size();
  return out_;
}

}  // namespace weft
