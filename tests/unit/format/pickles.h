// Builds pickles from opcodes, as texts of bytes (header only).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builders.h"

namespace weft::testing {

inline std::string p_text(std::string_view text) {
  return "X" + le32(text.size()) + std::string(text);
}
inline std::string p_int(std::uint64_t value) {
  return "\x8a\x08" + le64(value);
}
inline std::string p_small(unsigned value) {
  return "M" + le16(value);
}
inline std::string p_tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
inline std::string p_numbers(const std::vector<unsigned>& numbers) {
  std::string out = "(";
  for (const unsigned number : numbers) out += p_small(number);
  return out + "t";
}
inline std::string p_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string p_call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + p_tuple(arguments) + "R";
}
inline std::string p_dict(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out = "}(";
  for (const auto& [key, value] : pairs) out += p_text(key) + value;
  return out + "u";
}
inline std::string p_file(const std::string& value) {
  return "\x80\x02" + value + ".";
}

// The persistent id of a storage, and a tensor in it.
inline std::string p_storage(std::string_view key, std::string_view type = "FloatStorage") {
  return p_tuple({p_text("storage"), p_global("torch", type), p_text(key), p_text("cpu"), p_small(1)}) + "Q";
}
inline std::string p_tensor(const std::string& storage, unsigned offset, const std::vector<unsigned>& shape,
                            const std::vector<unsigned>& strides, const std::string& metadata = "}") {
  const std::string hooks = p_global("collections", "OrderedDict") + ")R";
  return p_call(p_global("torch._utils", "_rebuild_tensor_v2"),
                {storage, p_small(offset), p_numbers(shape), p_numbers(strides), "\x89", hooks, metadata});
}

}  // namespace weft::testing
