#include "daemon/access.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/text.h"
#include "os/acting_as.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::size_t kEntryBytes = 64U << 10U;  // largest entry of the user and group databases

template <class Entry, class Lookup>
bool known(Entry& entry, Lookup lookup, const std::string& name) {
  std::vector<char> bytes(kEntryBytes);
  Entry* found = nullptr;
  return lookup(name.c_str(), &entry, bytes.data(), bytes.size(), &found) == 0 && found != nullptr;
}

std::optional<std::uint32_t> id_of(const std::string& text) {
  const auto number = parse_u64(text);
  if (!number || *number >= std::numeric_limits<std::uint32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}

// Adds to `ids` the number `name`, or the id that `lookup` finds for the name.
template <class Entry, class Lookup, class Id>
Status add(const std::string& name, std::string_view kind, Lookup lookup, Id Entry::*id, std::set<Id>& ids) {
  Entry entry{};
  if (const auto number = id_of(name))
    ids.insert(*number);
  else if (known(entry, lookup, name))
    ids.insert(entry.*id);
  else
    return Error{Errc::invalid, fmt::format("no {} \"{}\" on this machine", kind, printable(name))};
  return {};
}

}  // namespace

Result<Grant> parse_grant(std::span<const std::string> who) {
  Grant grant;
  for (const std::string& one : who)
    WEFT_CHECK(one.starts_with('@') ? add(one.substr(1), "group", ::getgrnam_r, &group::gr_gid, grant.groups)
                                    : add(one, "user", ::getpwnam_r, &passwd::pw_uid, grant.users));
  return grant;
}

Status check_access(const Grant& grant, const PeerCredentials& peer, std::string_view what) {
  if (peer.uid == 0 || peer.uid == own_user() || grant.users.contains(peer.uid)) return {};
  const auto granted = [&](gid_t group) { return grant.groups.contains(group); };
  if (granted(peer.gid) || std::any_of(peer.groups.begin(), peer.groups.end(), granted)) return {};
  return Error{Errc::permission,
               fmt::format("weftd: user {} may not {} here: expected root, weftd's user, or one of {} "
                           "in weft.conf",
                           peer.uid, what, grant.setting)};
}

Author author_of(const PeerCredentials& peer) {
  return {user_name(peer.uid), {}};
}

}  // namespace weft
