#include "daemon/access.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "os/lookups/users.h"
#include "os/sys.h"

namespace weft {
namespace {

std::optional<std::uint32_t> id_of(const std::string& text) {
  const auto number = parse_u64(text);
  if (!number || *number >= std::numeric_limits<std::uint32_t>::max()) return {};
  return static_cast<std::uint32_t>(*number);
}

// Adds to `ids` the number `name`, or the id that `look_up` finds for the name.
template <class Id>
Status add(const std::string& name, Result<Id> (*look_up)(const std::string&), std::set<Id>& ids) {
  if (const auto number = id_of(name)) return ids.insert(*number), Status{};
  WEFT_TRY(const Id id, look_up(name));
  ids.insert(id);
  return {};
}

}  // namespace

Result<Grant> parse_grant(std::span<const std::string> who) {
  Grant grant;
  for (const std::string& one : who)
    WEFT_CHECK(one.starts_with('@') ? add(one.substr(1), group_id, grant.groups) : add(one, user_id, grant.users));
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

Status check_owner(const PeerCredentials& peer, std::string_view what) {
  if (peer.uid == 0 || peer.uid == own_user()) return {};
  return Error{Errc::permission,
               fmt::format("weftd: user {} may not {} here: expected root or weftd's user", peer.uid, what)};
}

Author author_of(const PeerCredentials& peer) {
  return {user_name(peer.uid), {}};
}

}  // namespace weft
