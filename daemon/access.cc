#include "daemon/access.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/text.h"
#include "os/lookups/users.h"
#include "os/sys.h"
#include "weft/names.h"

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

bool is_administrator(const PeerCredentials& peer) {
  return peer.uid == 0 || peer.uid == own_user();
}

bool covers(std::string_view prefix, std::string_view model) {
  if (!model.starts_with(prefix)) return false;
  return prefix.ends_with('/') || model.size() == prefix.size() || model[prefix.size()] == '/';
}

std::vector<std::string> pieces_of(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (const std::string_view piece : split(text, separator))
    if (!piece.empty()) pieces.emplace_back(piece);
  return pieces;
}

Error no_rule(std::string_view text, std::string_view expected) {
  return {Errc::invalid, fmt::format("expected {}, got \"{}\"", expected, printable(text))};
}

}  // namespace

const Grant& NameGrants::of(std::string_view model) const {
  const Grant* longest = &others;
  std::size_t length = 0;
  for (const auto& [prefix, grant] : by_prefix)
    if (prefix.size() > length && covers(prefix, model)) longest = &grant, length = prefix.size();
  return *longest;
}

Result<GrantRule> parse_grant_rule(std::string_view text) {
  const std::vector<std::string> words = pieces_of(text, ' ');
  if (words.size() < 2) return no_rule(text, "a prefix, then publish=WHO,WHO or remove=WHO,WHO");
  GrantRule rule{words.front(), {}, {}};
  const std::string_view name =
      std::string_view(rule.prefix).substr(0, rule.prefix.size() - rule.prefix.ends_with('/'));
  if (!check_model_name(name).ok())
    return no_rule(rule.prefix, "a model's name, or the beginning of names up to a '/'");
  for (const std::string& word : std::span(words).subspan(1)) {
    const bool publish = word.starts_with("publish=");
    auto& right = publish ? rule.publish : rule.remove;
    if ((!publish && !word.starts_with("remove=")) || right)
      return no_rule(word, "publish=WHO,WHO and remove=WHO,WHO, each once");
    right = pieces_of(std::string_view(word).substr(word.find('=') + 1), ',');
  }
  return rule;
}

Result<Grant> parse_grant(std::span<const std::string> who) {
  Grant grant;
  for (const std::string& one : who)
    WEFT_CHECK(one.starts_with('@') ? add(one.substr(1), group_id, grant.groups) : add(one, user_id, grant.users));
  return grant;
}

Status check_access(const Grant& grant, const PeerCredentials& peer, std::string_view what) {
  if (is_administrator(peer) || grant.users.contains(peer.uid)) return {};
  const auto granted = [&](gid_t group) { return grant.groups.contains(group); };
  if (granted(peer.gid) || std::any_of(peer.groups.begin(), peer.groups.end(), granted)) return {};
  return Error{Errc::permission,
               fmt::format("weftd: user {} may not {} here: expected root, weftd's user, or one of {} "
                           "in weft.conf",
                           peer.uid, what, grant.setting)};
}

Status check_access(const NameGrants& grants, std::string_view model, const PeerCredentials& peer,
                    std::string_view what) {
  return check_access(grants.of(model), peer, fmt::format("{} {}", what, printable(model)));
}

Status check_any_access(const NameGrants& grants, const PeerCredentials& peer, std::string_view what) {
  for (const auto& [prefix, grant] : grants.by_prefix)
    if (check_access(grant, peer, what).ok()) return {};
  return check_access(grants.others, peer, what);
}

Status check_every_access(const NameGrants& grants, const PeerCredentials& peer, std::string_view what) {
  WEFT_CHECK(check_access(grants.others, peer, what));
  for (const auto& [prefix, grant] : grants.by_prefix) WEFT_CHECK(check_access(grant, peer, what));
  return {};
}

Status check_owner(const PeerCredentials& peer, std::string_view what) {
  if (is_administrator(peer)) return {};
  return Error{Errc::permission,
               fmt::format("weftd: user {} may not {} here: expected root or weftd's user", peer.uid, what)};
}

Author author_of(const PeerCredentials& peer) {
  return {.user = user_name(peer.uid), .bound = !is_administrator(peer)};
}

}  // namespace weft
