#include "daemon/copies.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "base/limits.h"
#include "peers/health_facts.h"
#include "weft/cluster/origin.h"
#include "weft/store/walk.h"

namespace weft {
namespace {

constexpr auto kMemberPatience = std::chrono::seconds(10);  // a member judges for a second before it answers
constexpr auto kOriginAnswerMax = std::chrono::seconds(30);

struct Counted {
  SoleVersion version;
  std::string publisher;
  bool saved = false;                // it is at the origin
  std::vector<std::string> holders;  // ids of present nodes
  bool is_open() const { return !saved && holders.size() < 2; }
};

class CopySearch {
 public:
  CopySearch(DaemonParts& parts, CopyKind kind, const std::function<bool()>& cancelled,
             const std::set<std::string>& without)
      : parts_(parts),
        kind_(kind),
        cancelled_(cancelled),
        without_(without),
        self_(parts.store.cluster()->node),
        origin_(parts.config.get()->origin) {
    for (Member& member : parts.registry.members())
      if (member.node != self_) members_.emplace(member.node, std::move(member));
  }

  Result<std::vector<SoleVersion>> run() {
    WEFT_CHECK(collect());
    if (!origin_.empty()) WEFT_CHECK(ask_publishers());
    if (!origin_.empty()) WEFT_CHECK(ask_origin());
    if (!without_.contains(self_)) WEFT_CHECK(look_here());
    for (const auto& [node, member] : members_)
      if (can_answer(member) && !without_.contains(node)) WEFT_CHECK(ask_for_copies(member));
    std::vector<SoleVersion> out;
    for (Counted& one : counted_) {
      if (!one.is_open()) continue;
      one.version.present = !one.holders.empty();
      one.version.publisher = one.publisher;
      one.version.holder = one.version.present ? one.holders.front() : one.publisher;
      out.push_back(std::move(one.version));
    }
    return out;
  }

 private:
  using OnState = std::function<void(Counted&, unsigned state)>;
  using Answers = std::function<Result<PeerHealth>(const AskHealth& question)>;

  // A member without an address answers no calls, so no node can read from it either.
  bool can_answer(const Member& member) const { return parts_.bytes.peers != nullptr && !member.address.empty(); }

  // The publisher of a version keeps its bytes until they are at the origin.
  Status collect() {
    Renewed renewed(parts_.store);
    const auto add = [&](const VersionRow& row) -> Status {
      if (row.removed) return {};
      Counted one;
      one.version = {{row.model_name, row.number}, row.manifest, row.logical_bytes, row.time_ns, {}, {}, false};
      one.publisher = row.publisher;
      if (row.publisher == self_) {
        WEFT_TRY(Snapshot * now, renewed.get());
        WEFT_TRY(const Durability durability, now->durability(row));
        one.saved = durability == Durability::origin;
      }
      if ((row.publisher == self_ || members_.contains(row.publisher)) && !without_.contains(row.publisher))
        one.holders.push_back(row.publisher);
      counted_.push_back(std::move(one));
      return {};
    };
    return each_row(parts_.store, list_models(),
                    [&](const ModelRow& model) { return each_row(parts_.store, list_versions(model.id), add); });
  }

  // Asks for the states of versions. An answer may judge only some of the versions that one question names.
  Status ask(const std::vector<Counted*>& versions, const Answers& answers, const OnState& on_state) {
    for (std::size_t at = 0; at < versions.size();) {
      if (cancelled_()) return Error{Errc::cancelled, "interrupted"};
      const auto some = std::span(versions).subspan(at, std::min(limits::kHealthManifestsMax, versions.size() - at));
      AskHealth question;
      for (const Counted* one : some) question.manifests.push_back(one->version.manifest);
      WEFT_TRY(const PeerHealth health, answers(question));
      for (std::size_t i = 0; i < health.states.size(); ++i) on_state(*some[i], health.states[i]);
      at += health.states.size();
    }
    return {};
  }

  Status ask(const Member& member, const std::vector<Counted*>& versions, const OnState& on_state) {
    const auto answers = [&](const AskHealth& question) -> Result<PeerHealth> {
      const auto answer = parts_.bytes.peers->ask(member.node, question, deadline_in(kMemberPatience));
      auto health = answer.ok() ? decode_health(*answer, question) : Result<PeerHealth>(answer.error());
      if (health.ok()) return health;
      return Error{health.error().code, fmt::format("{} does not answer: {}", member.name, health.error().message)};
    };
    return ask(versions, answers, on_state);
  }

  Status ask_publishers() {
    std::map<std::string, std::vector<Counted*>> of;
    for (Counted& one : counted_)
      if (const auto at = members_.find(one.publisher); at != members_.end() && can_answer(at->second))
        of[one.publisher].push_back(&one);
    for (const auto& [node, versions] : of)
      WEFT_CHECK(ask(members_.at(node), versions,
                     [](Counted& one, unsigned state) { one.saved = (state & kStateSaved) != 0; }));
    return {};
  }

  // Looks up the versions whose publishers did not tell.
  Status ask_origin() {
    std::vector<Digest> manifests;
    const auto is_asked = [&](const Counted& one) {
      const auto at = members_.find(one.publisher);
      return one.publisher != self_ && (at == members_.end() || !can_answer(at->second));
    };
    for (const Counted& one : counted_)
      if (is_asked(one)) manifests.push_back(one.version.manifest);
    if (manifests.empty()) return {};
    WEFT_TRY(const std::string known, parts_.store.ledger().origin());
    WEFT_TRY(const std::vector<Digest> lacking, lacking_at_origin(origin_, known, parts_.store.cluster()->cluster,
                                                                  std::move(manifests), kOriginAnswerMax));
    for (Counted& one : counted_)
      if (is_asked(one)) one.saved = !std::ranges::binary_search(lacking, one.version.manifest);
    return {};
  }

  bool counts(unsigned state) const { return (state & (kind_ == CopyKind::kept ? kStatePinned : kStateWhole)) != 0; }

  std::vector<Counted*> open_without(const std::string& node) {
    std::vector<Counted*> out;
    for (Counted& one : counted_)
      if (one.is_open() && std::ranges::find(one.holders, node) == one.holders.end()) out.push_back(&one);
    return out;
  }

  OnState add_holder(const std::string& node) const {
    return [this, &node](Counted& one, unsigned state) {
      if (counts(state)) one.holders.push_back(node);
    };
  }

  Status look_here() {
    const auto answers = [this](const AskHealth& question) { return health_facts(parts_.store, question); };
    return ask(open_without(self_), answers, add_holder(self_));
  }

  Status ask_for_copies(const Member& member) {
    return ask(member, open_without(member.node), add_holder(member.node));
  }

  DaemonParts& parts_;
  const CopyKind kind_;
  const std::function<bool()>& cancelled_;
  const std::set<std::string>& without_;
  const std::string self_, origin_;
  std::map<std::string, Member> members_;  // the other ones, by node
  std::vector<Counted> counted_;
};

}  // namespace

Result<std::vector<SoleVersion>> sole_versions(DaemonParts& parts, CopyKind kind,
                                               const std::function<bool()>& cancelled,
                                               const std::set<std::string>& without) {
  if (!parts.store.cluster()) return std::vector<SoleVersion>();
  if (!parts.registry.status().connected)
    return Error{Errc::unreachable, fmt::format("etcd does not answer: {}", parts.registry.status().trouble)};
  return CopySearch(parts, kind, cancelled, without).run();
}

}  // namespace weft
