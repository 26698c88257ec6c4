// The blocks between the members of a tar: ustar headers, with a pax record for a size that ustar cannot say. Makes no
// system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

class TarWriter {
 public:
  // `time_ns` becomes the time of all members.
  explicit TarWriter(std::uint64_t time_ns) : time_s_(time_ns / 1'000'000'000) {}
  // begin() returns what comes before a member: the padding of the last one, and the headers. end() returns the end of
  // the tar. Both are valid until the next call. `name` has at most 100 bytes.
  std::span<const std::byte> begin(std::string_view name, std::uint64_t size);
  std::span<const std::byte> end();
  void count(std::uint64_t bytes) { at_ += bytes; }  // bytes of the member

 private:
  void pad();
  void header(std::string_view name, std::uint64_t size, char type);
  const std::uint64_t time_s_;
  std::uint64_t at_ = 0;  // bytes of the tar so far, without out_
  std::vector<std::byte> out_;
};

}  // namespace weft
