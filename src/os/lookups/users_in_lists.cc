// users.h by /etc/passwd and /etc/group.
#include <fmt/core.h>

#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "os/lookups/user_lists.h"
#include "os/lookups/users.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr char kPasswd[] = "/etc/passwd";
constexpr char kGroup[] = "/etc/group";

// Returns the text of the file; "" if it cannot be read.
std::string text_of(const std::string& path) {
  auto text = read_kernel_file(path, limits::kUserListMax);
  return text.ok() ? std::move(text).value() : "";
}

Error not_listed(std::string_view kind, std::string_view name, std::string_view file) {
  return {Errc::invalid,
          fmt::format("no {0} \"{1}\" in {2}; this weft is a static program, which knows the {0}s of that "
                      "file alone",
                      kind, printable(name), file)};
}

}  // namespace

Result<uid_t> user_id(const std::string& name) {
  const std::string passwd = text_of(kPasswd);
  const auto found = find_user(passwd, std::string_view(name));
  if (!found) return not_listed("user", name, kPasswd);
  return found->uid;
}

Result<gid_t> group_id(const std::string& name) {
  const auto found = find_group(text_of(kGroup), name);
  if (!found) return not_listed("group", name, kGroup);
  return *found;
}

std::optional<std::string> name_of_user(uid_t uid) {
  const std::string passwd = text_of(kPasswd);
  const auto found = find_user(passwd, uid);
  return found ? std::optional<std::string>(found->name) : std::nullopt;
}

std::vector<gid_t> login_groups(uid_t uid, gid_t gid) {
  const auto name = name_of_user(uid);
  if (!name) return {};
  std::vector<gid_t> groups = groups_with(text_of(kGroup), *name);
  std::erase(groups, gid);
  groups.insert(groups.begin(), gid);
  return groups;
}

}  // namespace weft
