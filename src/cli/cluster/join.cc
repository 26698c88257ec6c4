#include <chrono>
#include <iostream>
#include <string>

#include "base/limits.h"
#include "base/text.h"
#include "cli/cluster/cluster_commands.h"
#include "cli/cluster/node.h"
#include "cli/shared/table.h"
#include "cluster_setup/ask_to_join.h"
#include "cluster_setup/etcd_growth.h"
#include "cluster_setup/setup.h"
#include "os/lookups/own_address.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterJoinInfo = {
    .name = "cluster join",
    .summary = "make this machine a node of a cluster, by a token",
    .description =
        "Asks the node that made TOKEN for the key and the settings of the cluster and for\n"
        "a certificate, creates a store, and starts weftd. The node listens at the\n"
        "interface that reaches that node. TOKEN is what `weft cluster init` or `weft\n"
        "cluster token` prints; \"-\" reads it from standard input. join hides TOKEN from\n"
        "the list of processes.\n"
        "\n"
        "join overwrites nothing, and removes what it has created if it fails.\n",
    .examples =
        "weft cluster join TOKEN\n"
        "ssh node1 weft cluster token -q | weft cluster join - --dir ~/weft\n",
    .json = "{node, cluster, members, seconds}\n",
    .interrupted = "the node is not set up",
};

class ClusterJoinCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    options.argument("TOKEN", text_, OptionSet::Need::required, "the token, or \"-\" for standard input", {});
    node_.declare_node(options);
  }

  Status check_usage() override {
    hide_argument(text_);
    return node_.check();
  }

  Result<int> run(Context& context) override {
    const auto began = std::chrono::steady_clock::now();
    WEFT_TRY(const setup::Token token, read_token());
    WEFT_TRY(const setup::Places places, node_.places(context));
    WEFT_TRY(setup::NodeParts parts, own_parts(context, token));
    if (node_.dry_run) return print_plan(context, places, std::move(parts), token);
    WEFT_TRY(setup::NodeSetup setup, setup::NodeSetup::begin(places));
    setup::JoinAnswer expected = expected_answer(token);
    if (!etcd_.empty()) expected.initial_cluster = parts.name;
    WEFT_CHECK(setup::NodeSetup::check(setup::node_plan(places, with_answer(parts, expected))));
    WEFT_CHECK(check_ports_free(parts.listen, {0}));
    const bool may_have_etcd =
        !etcd_.empty() && check_ports_free(parts.listen, {setup::kEtcdPortStep, setup::kEtcdPeerPortStep}).ok();
    const setup::JoinPlace peers = setup::place_after(parts.listen, setup::kEtcdPeerPortStep);
    WEFT_TRY(const setup::JoinAnswer answer,
             setup::ask_to_join(token, {parts.name, parts.listen.host, may_have_etcd ? peers.port : std::uint16_t{0},
                                        now_ns() / 1'000'000'000}));
    const setup::NodeParts all = with_answer(parts, answer);
    WEFT_CHECK(setup.carry_out(setup::node_plan(places, all)));
    setup::MemberTrial member(setup::member_options(places, answer.etcd.endpoints),
                              all.member ? setup::etcd_url(peers) : "");
    WEFT_CHECK(member.promote([&] { return context.environment().interrupt != 0; }));
    WEFT_TRY(const ReadyNode ready, wait_ready(context, places, all.listen, true));
    WEFT_CHECK(setup.finish());
    member.keep();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    report(context, all, ready, took.count());
    return kExitDone;
  }

 private:
  // Reads the token from standard input for "-", or takes the argument, also as a whole command.
  Result<setup::Token> read_token() const {
    if (text_ != "-") return setup::parse_token(text_);
    std::string line(limits::kJoinTokenMax + 64, '\0');
    std::cin.getline(line.data(), static_cast<std::streamsize>(line.size()));
    line.resize(static_cast<std::size_t>(std::cin.gcount()));
    while (!line.empty() && (line.back() == '\0' || line.back() == '\n')) line.pop_back();
    const std::string_view words = line;
    return setup::parse_token(words.substr(words.find("weft1.") == std::string_view::npos ? 0 : words.find("weft1.")));
  }

  Result<setup::NodeParts> own_parts(const Context& context, const setup::Token& token) {
    setup::NodeParts parts;
    etcd_ = node_program(context, "etcd", "").ok() ? *node_program(context, "etcd", "") : "";
    parts.name = node_.node_name();
    WEFT_TRY(parts.weftd, node_program(context, "weftd", "install the package weftd"));
    WEFT_TRY(auto given, node_.given_listen());
    if (given) {
      parts.listen = *std::move(given);
      return parts;
    }
    WEFT_TRY(const setup::JoinPlace first, setup::parse_place(token.endpoint));
    WEFT_TRY(parts.listen.host, own_address_towards(first.host, first.port));
    parts.listen.port = setup::kListenPort;
    return parts;
  }

  setup::NodeParts with_answer(setup::NodeParts parts, const setup::JoinAnswer& answer) const {
    parts.cluster = answer.cluster;
    parts.origin = answer.origin;
    parts.etcd = answer.etcd;
    if (!answer.initial_cluster.empty()) {
      parts.member.emplace(setup::EtcdMember{etcd_, "", answer.initial_cluster, false});
      parts.etcd.endpoints.push_back(setup::etcd_url(setup::place_after(parts.listen, setup::kEtcdPortStep)));
    }
    parts.cluster_key = answer.cluster_key;
    return parts;
  }

  // An answer that leads to the same files.
  static setup::JoinAnswer expected_answer(const setup::Token& token) {
    const std::string from = fmt::format("(from {})", token.endpoint);
    setup::JoinAnswer answer;
    answer.cluster = from;
    answer.etcd = {{from}, from, "", "", from + "\n", from + "\n", from + "\n"};
    return answer;
  }

  Result<int> print_plan(const Context& context, const setup::Places& places, setup::NodeParts parts,
                         const setup::Token& token) const {
    parts = with_answer(std::move(parts), expected_answer(token));
    context.print("{}", setup::plan_text(setup::node_plan(places, parts)));
    return kExitDone;
  }

  static void report(const Context& context, const setup::NodeParts& parts, const ReadyNode& ready, double seconds) {
    if (context.json) {
      JsonWriter json;
      json.begin_object().member("node", parts.name).member("cluster", parts.cluster);
      json.member("members", ready.members).member("seconds", seconds);
      return context.print_json(json.end_object());
    }
    if (!context.quiet)
      context.print("{} reads and publishes: one of {} of the cluster {}, after {:.1f} s\n", parts.name,
                    count_of(ready.members, "node"), parts.cluster, seconds);
  }

  std::string text_;
  NodeOptions node_;
  std::string etcd_;  // the path of the program; "": none is here
};

}  // namespace

constinit const CommandEntry kClusterJoinCommand = {kClusterJoinInfo, make<ClusterJoinCommand>};

}  // namespace weft
