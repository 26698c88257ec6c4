// The registry of a node without a cluster: its store.
#include <algorithm>

#include "os/sys.h"
#include "weft/cluster/registry.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

// There is no other node.
class LocalClaim final : public Claim {
 public:
  Result<ClaimStanding> stand() override { return ClaimStanding{.held = true}; }
};

class LocalRegistry final : public Registry {
 public:
  LocalRegistry(Store& store, FlushRecords& memory) : store_(store), memory_(memory), since_ns_(now_ns()) {}

  Result<PublishOutcome> publish(Import& import, const PublishRequest& request) override {
    return import.publish(request);
  }
  Status set_tag(std::string_view model, std::string_view tag, std::optional<std::uint64_t> number,
                 const Author& by) override {
    return store_.set_tag(model, tag, number, by);
  }
  Status describe(std::string_view model, std::uint64_t number, const DescriptionChange& change) override {
    return store_.describe(model, number, change);
  }
  Status protect_tag(std::string_view model, std::string_view tag, bool on, const Author& by) override {
    return store_.protect_tag(model, tag, on, by);
  }
  Status rename_model(std::string_view model, std::string_view to, const Author& by) override {
    return store_.rename_model(model, to, by);
  }
  Result<UndeletedVersion> undelete(std::string_view model, std::uint64_t number, const IsAtOrigin& /*is_at_origin*/,
                                    const Author& by) override {
    return store_.undelete(model, number, by);
  }
  Status keep_version(std::string_view model, std::uint64_t number) override {
    return memory_.keep_version(model, number);
  }
  Status lose_version(std::string_view model, std::uint64_t number, std::string_view why) override {
    return memory_.lose_version(model, number, why);
  }
  // Versions of a store without a cluster have no identities.
  Result<std::size_t> remove_versions(std::span<const VersionName> versions, Tagged tagged, const Author& by,
                                      const Uuid& /*uid*/) override {
    return store_.remove_versions(versions, tagged, by);
  }
  Result<bool> bring_back(const MirrorChange& /*change*/, bool /*check_only*/) override {
    return Error{Errc::unsupported, "this node belongs to no cluster: it has no registry to restore"};
  }
  Result<ReconcileReport> reconcile(const ReconcileRequest& /*request*/) override {
    return Error{Errc::unsupported, "this node belongs to no cluster: it has no registry to reconcile"};
  }
  Result<std::uint64_t> catch_up(Clock::time_point /*deadline*/) override {
    WEFT_TRY(std::unique_ptr<Snapshot> snapshot, store_.snapshot());
    return snapshot->registry_revision();
  }
  Result<std::unique_ptr<Claim>> claim(std::string_view /*key*/) override {
    return std::unique_ptr<Claim>(std::make_unique<LocalClaim>());
  }
  std::vector<Member> members() const override { return {}; }
  RegistryStatus status() const override {
    RegistryStatus status;
    status.since_ns = since_ns_;
    return status;
  }

 private:
  Store& store_;
  FlushRecords& memory_;
  const std::uint64_t since_ns_;
};

}  // namespace

Status Registry::forget_node(const std::string& /*node*/) {
  return Error{Errc::unsupported, "this node belongs to no cluster: it knows no other nodes"};
}

std::string name_of_node(const Registry& registry, const std::string& node) {
  const auto known = registry.nodes();
  const auto found = std::ranges::find(known, node, &KnownNode::node);
  return found == known.end() || found->name.empty() ? "node " + node : found->name;
}

std::unique_ptr<Registry> local_registry(Store& store, FlushRecords& memory) {
  return std::make_unique<LocalRegistry>(store, memory);
}

}  // namespace weft
