#include "cli/cluster/cluster_commands.h"
#include "cli/cluster/node.h"
#include "cli/shared/daemon_call.h"
#include "cli/shared/table.h"
#include "cluster_setup/etcd_growth.h"
#include "cluster_setup/setup.h"
#include "daemon_api/control_messages.h"
#include "weft/store/snapshot.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterLeaveInfo = {
    .name = "cluster leave",
    .summary = "take this machine out of its cluster",
    .description =
        "Stops the programs that `weft cluster init` or `weft cluster join` has started,\n"
        "and removes the files that it has created: settings, keys, certificates and the\n"
        "data of etcd. The store stays.\n"
        "\n"
        "leave refuses while other nodes need this one: the first node, which has the\n"
        "etcd of the cluster and admits others, and a node whose versions are not all at\n"
        "the origin. --force leaves all the same.\n",
    .examples =
        "weft cluster leave\n"
        "weft cluster leave --dir /scratch/job --force\n",
    .json = "{store}\n",
};

class ClusterLeaveCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    node_.declare_place(options);
    options.flag("-f,--force", force_, "leave although other nodes need this one");
  }

  Status check_usage() override { return node_.check(); }

  Result<int> run(Context& context) override {
    WEFT_TRY(const setup::Places places, node_.places(context));
    WEFT_TRY(const setup::SetupRecord record, setup::read_record(places));
    context.store_option = places.store;
    if (!force_ && record.finished) WEFT_CHECK(check_needed(context, record));
    if (const Status left = leave_registry(context); !left.ok() && !force_) return left.error();
    if (!record.peer_url.empty())
      if (const Status left = leave_etcd(places, record); !left.ok() && !force_) return left.error();
    WEFT_CHECK(setup::remove_setup(places));
    if (context.json) {
      JsonWriter json;
      context.print_json(json.begin_object().member("store", places.store).end_object());
    } else if (!context.quiet) {
      context.print("this machine has left the cluster; its store stays in {}\n", places.store);
    }
    return kExitDone;
  }

 private:
  // The cluster forgets this node. A store without a cluster is known to none.
  static Status leave_registry(const Context& context) {
    WEFT_TRY(const auto daemon, context.daemon());
    if (!daemon) return {};
    const auto left = call_daemon<Nothing>(context, *daemon, "node_leave", Nothing{});
    return left.ok() || left.error().code == Errc::unsupported ? Status{} : Status{left.error()};
  }

  // Removes the etcd of this node from the members while it runs: the remaining members then need fewer for a quorum.
  static Status leave_etcd(const setup::Places& places, const setup::SetupRecord& record) {
    etcd::Client client(setup::member_options(places, record.endpoints));
    return setup::remove_member(client, record.peer_url);
  }

  static Status check_needed(const Context& context, const setup::SetupRecord& record) {
    WEFT_TRY(const auto daemon, context.daemon());
    if (!daemon)
      return Error{Errc::unreachable,
                   "weftd does not run here, so it is unknown whether other nodes need this one; start "
                   "it, or use --force"};
    WEFT_TRY(const auto list, call_daemon<PeerList>(context, *daemon, "peers", Nothing{}));
    if (list.peers.size() < 2) return {};
    if (!record.join.empty())
      return Error{Errc::busy, fmt::format("{} need this node, which is the first one of the cluster; let them leave "
                                           "before, or use --force",
                                           count_of(list.peers.size() - 1, "other node"))};
    return check_saved(context, *daemon);
  }

  static Status check_saved(const Context& context, control::Client& daemon) {
    WEFT_TRY(const auto answer, context.ask(daemon, "status", "{}"));
    const JsonValue* const behind = answer.body.find("write_behind");
    if (behind == nullptr) return check_empty(context);
    WEFT_TRY(const std::uint64_t waiting, behind->number("waiting"));
    if (waiting == 0) return {};
    return Error{Errc::busy,
                 fmt::format("{} of this node not at the origin yet; wait for them (weft stage-out), or use "
                             "--force",
                             count_of(waiting, "version"))};
  }

  // Without an origin, this store may have the only copy of each version.
  static Status check_empty(const Context& context) {
    WEFT_TRY(const auto store, context.open_to_read());
    WEFT_TRY(const auto snapshot, store->snapshot());
    WEFT_TRY(const auto models, snapshot->models());
    if (models.rows.empty()) return {};
    return Error{Errc::busy,
                 "the cluster has no origin, so this node may have the only copy of a version; use --force to "
                 "leave with the bytes in its store"};
  }

  NodeOptions node_;
  bool force_ = false;
};

}  // namespace

constinit const CommandEntry kClusterLeaveCommand = {kClusterLeaveInfo, make<ClusterLeaveCommand>};

}  // namespace weft
