#include "cluster_setup/etcd_growth.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"

namespace weft::setup {
namespace {

using EtcdMembers = std::vector<etcd::EtcdMember>;
using Clock = std::chrono::steady_clock;

constexpr auto kTurnPatience = std::chrono::seconds(15);  // less than a machine waits for the answer to its join
constexpr auto kPromotePatience = std::chrono::seconds(60);
constexpr auto kLeftOver = kPromotePatience + 2 * kTurnPatience;
constexpr auto kPause = std::chrono::milliseconds(200);

const etcd::EtcdMember* member_at(const EtcdMembers& members, const std::string& peer_url) {
  const auto found = std::ranges::find_if(
      members, [&](const etcd::EtcdMember& one) { return std::ranges::count(one.peer_urls, peer_url) > 0; });
  return found == members.end() ? nullptr : &*found;
}

std::string initial_cluster(const EtcdMembers& members, const NewMember& added) {
  std::string text;
  for (const etcd::EtcdMember& one : members)
    for (const std::string& url : one.peer_urls)
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", url == added.peer_url ? added.name : one.name, url);
  return text;
}

// Returns the members with the new one; nothing if it has to wait for its turn.
Result<std::optional<std::string>> try_to_add(etcd::Client& client, const NewMember& member, std::uint64_t members_max,
                                              LearnerAge& learner) {
  WEFT_TRY(const EtcdMembers members, client.members());
  const auto* const own = member_at(members, member.peer_url);
  if (own != nullptr && !own->is_learner && !own->name.empty()) return std::optional(std::string());
  if (own != nullptr) {  // an earlier join of this machine has not ended well
    WEFT_CHECK(client.remove_member(own->id));
    return std::optional<std::string>();
  }
  const auto other = std::ranges::find(members, true, &etcd::EtcdMember::is_learner);
  if (other != members.end() && learner.is_left_over(other->id)) {
    log_warning("the etcd at {} has not caught up since it was added; it is removed",
                printable(other->peer_urls.front()));
    WEFT_CHECK(client.remove_member(other->id));
    return std::optional<std::string>();
  }
  const bool is_name_taken = std::ranges::count(members, member.name, &etcd::EtcdMember::name) > 0;
  if (members.size() >= members_max || is_name_taken) return std::optional(std::string());
  if (other != members.end()) return std::optional<std::string>();
  WEFT_TRY(const EtcdMembers all, client.add_learner(member.peer_url));
  if (const auto* const added = member_at(all, member.peer_url)) learner.is_left_over(added->id);  // from now on
  return std::optional(initial_cluster(all, member));
}

}  // namespace

bool LearnerAge::is_left_over(std::uint64_t member) {
  const std::lock_guard lock(mutex_);
  const auto now = now_();
  if (std::exchange(member_, member) != member) since_ = now;
  return now - since_ > kLeftOver;
}

// etcd refuses a change of its members until the latest one has been connected for 5 s.
std::string add_member(etcd::Client& client, const NewMember& member, std::uint64_t members_max, LearnerAge& learner) {
  const auto end = Clock::now() + kTurnPatience;
  for (;;) {
    const auto added = try_to_add(client, member, members_max, learner);
    if (added.ok() && *added) return **added;
    if (Clock::now() > end) {
      log_warning("{} joins without an etcd: {}", printable(member.name),
                  added.ok() ? "another member is being added" : added.error().message);
      return "";
    }
    std::this_thread::sleep_for(kPause);
  }
}

Status promote_member(etcd::Client& client, const std::string& peer_url, std::chrono::milliseconds patience,
                      const std::function<bool()>& stopped) {
  const auto end = Clock::now() + patience;
  for (;;) {
    const auto members = client.members();
    Status done = members.ok() ? Status{} : Status{members.error()};
    if (members.ok()) {
      const auto* const own = member_at(*members, peer_url);
      if (own == nullptr) return Error{Errc::not_found, fmt::format("etcd has no member {}", peer_url)};
      if (!own->is_learner) return {};
      done = client.promote(own->id);
      if (done.ok()) return {};
    }
    if (stopped()) return Error{Errc::cancelled, "interrupted"};
    if (Clock::now() > end)
      return Error{Errc::timed_out, fmt::format("the etcd of this node does not catch up: {}", done.error().message)};
    std::this_thread::sleep_for(kPause);
  }
}

std::vector<std::string> member_endpoints(etcd::Client& client, std::vector<std::string> known) {
  const auto members = client.members();
  if (!members.ok()) return known;
  for (const etcd::EtcdMember& one : *members)
    for (const std::string& url : one.client_urls)
      if (!one.is_learner && std::ranges::count(known, url) == 0) known.push_back(url);
  return known;
}

EtcdOptions member_options(const Places& places, const std::vector<std::string>& endpoints) {
  EtcdOptions options;
  options.endpoints = endpoints;
  options.ca = places.setting("etcd-ca.pem");
  options.cert = places.setting("etcd-cert.pem");
  options.key = places.setting("etcd-key.pem");
  return options;
}

MemberTrial::MemberTrial(EtcdOptions options, std::string peer_url)
    : client_(std::make_unique<etcd::Client>(std::move(options))), peer_url_(std::move(peer_url)) {}

MemberTrial::~MemberTrial() {
  if (!peer_url_.empty()) static_cast<void>(remove_member(*client_, peer_url_));
}

Status MemberTrial::promote(const std::function<bool()>& stopped) {
  return peer_url_.empty() ? Status{} : promote_member(*client_, peer_url_, kPromotePatience, stopped);
}

Status remove_member(etcd::Client& client, const std::string& peer_url) {
  const auto end = Clock::now() + kTurnPatience;
  for (;;) {
    const auto members = client.members();
    const auto* const own = members.ok() ? member_at(*members, peer_url) : nullptr;
    if (members.ok() && own == nullptr) return {};
    const Status removed = members.ok() ? client.remove_member(own->id) : Status{members.error()};
    if (removed.ok() || Clock::now() > end) return removed;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace weft::setup
