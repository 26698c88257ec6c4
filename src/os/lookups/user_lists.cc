#include "os/lookups/user_lists.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kPasswdFields = 7;  // name, password, uid, gid, comment, home, shell
constexpr std::size_t kGroupFields = 4;   // name, password, gid, members

// The largest number means "none" to system calls.
std::optional<std::uint32_t> id_of(std::string_view text) {
  const auto number = parse_u64(text);
  if (!number || *number >= std::numeric_limits<std::uint32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}

struct GroupLine {
  std::string_view name;
  gid_t gid = 0;
  std::string_view members;
};

std::optional<PasswdLine> passwd_line(std::string_view line) {
  const auto fields = split(line, ':');
  if (fields.size() != kPasswdFields || fields[0].empty()) return {};
  const auto uid = id_of(fields[2]);
  const auto gid = id_of(fields[3]);
  if (!uid || !gid) return {};
  return PasswdLine{fields[0], *uid, *gid};
}

std::optional<GroupLine> group_line(std::string_view line) {
  const auto fields = split(line, ':');
  if (fields.size() != kGroupFields || fields[0].empty()) return {};
  const auto gid = id_of(fields[2]);
  if (!gid) return {};
  return GroupLine{fields[0], *gid, fields[3]};
}

// Returns the first line that `parse` takes for an entry, and `wanted` for the right one.
template <class Parse, class Wanted>
auto first_of(std::string_view text, Parse parse, Wanted wanted) -> decltype(parse(text)) {
  for (const std::string_view line : split(text, '\n'))
    if (auto entry = parse(line); entry && wanted(*entry)) return entry;
  return {};
}

}  // namespace

std::optional<PasswdLine> find_user(std::string_view passwd, std::string_view name) {
  return first_of(passwd, passwd_line, [&](const PasswdLine& line) { return line.name == name; });
}

std::optional<PasswdLine> find_user(std::string_view passwd, uid_t uid) {
  return first_of(passwd, passwd_line, [&](const PasswdLine& line) { return line.uid == uid; });
}

std::optional<gid_t> find_group(std::string_view group, std::string_view name) {
  const auto found = first_of(group, group_line, [&](const GroupLine& line) { return line.name == name; });
  return found ? std::optional(found->gid) : std::nullopt;
}

std::vector<gid_t> groups_with(std::string_view group, std::string_view user) {
  std::vector<gid_t> groups;
  if (user.empty()) return groups;  // a group without members has an empty list
  for (const std::string_view line : split(group, '\n')) {
    const auto entry = group_line(line);
    if (entry && std::ranges::count(split(entry->members, ','), user) > 0) groups.push_back(entry->gid);
  }
  return groups;
}

}  // namespace weft
