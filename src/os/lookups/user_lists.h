// Entries of /etc/passwd and /etc/group (passwd(5), group(5)), out of the text of these files. Lines that are no entry
// are skipped, such as the lines of NIS that begin with "+". Pure. The first entry of a name or of a number counts.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

namespace weft {

// A line of /etc/passwd. `name` points into the text.
struct PasswdLine {
  std::string_view name;
  uid_t uid = 0;
  gid_t gid = 0;
};
std::optional<PasswdLine> find_user(std::string_view passwd, std::string_view name);
std::optional<PasswdLine> find_user(std::string_view passwd, uid_t uid);

std::optional<gid_t> find_group(std::string_view group, std::string_view name);
// Returns the groups that list the user as a member, in the order of the file.
std::vector<gid_t> groups_with(std::string_view group, std::string_view user);

}  // namespace weft
