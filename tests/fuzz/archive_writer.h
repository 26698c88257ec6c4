// Writes a zip archive of stored members, as PyTorch does (header only).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weft::fuzzing {

class ArchiveWriter {
 public:
  void add(const std::string& name, const std::string& bytes) {
    const std::string sizes = number(bytes.size(), 4) + number(bytes.size(), 4) + number(name.size(), 2);
    const std::string common = number(0, 12) + sizes + number(0, 2);  // flags, method, time and checksum are 0
    entries_ += "PK\1\2" + number(20, 2) + number(20, 2) + common + number(0, 10) + number(members_.size(), 4) + name;
    members_ += "PK\3\4" + number(20, 2) + common + name + bytes;
    ++count_;
  }
  // Returns where the bytes of a member of this name begin if it is the next one.
  std::size_t next_data(const std::string& name) const { return members_.size() + kLocalHeader + name.size(); }
  std::string archive() const {
    return members_ + entries_ + "PK\5\6" + number(0, 4) + number(count_, 2) + number(count_, 2) +
           number(entries_.size(), 4) + number(members_.size(), 4) + number(0, 2);
  }

 private:
  static constexpr std::size_t kLocalHeader = 30;  // bytes before the name

  static std::string number(std::uint64_t value, unsigned bytes) {
    std::string out(bytes, '\0');
    for (unsigned i = 0; i < bytes && i < sizeof value; ++i) out[i] = static_cast<char>(value >> (8U * i));
    return out;
  }

  std::string members_, entries_;
  unsigned count_ = 0;
};

}  // namespace weft::fuzzing
