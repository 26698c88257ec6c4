// Helpers for the tests of all folders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/model/format.h"
#include "weft/result.h"

namespace weft::testing {

// The value; a failure ends the test case, or the child process, with its message.
template <class T>
T must(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(result).value();
}
void must(const Status& status);

// A directory that goes with the object. Under $WEFT_TEST_TMP, else $TMPDIR, else /tmp.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

// A file in memory.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  explicit MemorySource(std::string_view text);
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) override;
  std::uint64_t reads() const { return reads_; }            // calls of read()
  std::uint64_t bytes_read() const { return bytes_read_; }  // bytes of all these calls

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t reads_ = 0, bytes_read_ = 0;
};

void write_file(const std::string& path, std::string_view text);  // makes parent directories
std::string read_text(const std::string& path);
std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed);
std::span<const std::byte> as_bytes(std::string_view text);
std::string_view as_text(std::span<const std::byte> bytes);

struct NamedTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};
// A well-formed safetensors file.
std::string safetensors_file(const std::vector<NamedTensor>& tensors, std::string_view metadata_json = "");

// Seed of random tests: $WEFT_TEST_SEED, else fresh. Print it (INFO or MESSAGE) with what fails.
std::uint64_t test_seed();

}  // namespace weft::testing
