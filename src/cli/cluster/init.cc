#include <array>
#include <chrono>
#include <span>
#include <vector>

#include "base/text.h"
#include "cli/cluster/cluster_commands.h"
#include "cli/cluster/node.h"
#include "cluster_setup/admission.h"
#include "cluster_setup/crypto.h"
#include "cluster_setup/private_files.h"
#include "cluster_setup/setup.h"
#include "os/lookups/own_address.h"
#include "os/sys.h"
#include "weft/cluster/registry.h"

namespace weft {
namespace {

constexpr CommandInfo kClusterInitInfo = {
    .name = "cluster init",
    .summary = "make this machine the first node of a new cluster",
    .description =
        "Creates a store, the key of the cluster, the settings of weftd, certificates and\n"
        "an etcd, starts weftd and etcd, and prints a command for other machines. Nodes\n"
        "listen at four ports in a row: weftd at PORT of --listen, joins at the next one,\n"
        "etcd at the two after it.\n"
        "\n"
        "With --etcd, the cluster uses an etcd of your site, and none is started. --etcd\n"
        "may be given for each endpoint.\n"
        "\n"
        "init overwrites nothing, and removes what it has created if it fails.\n",
    .examples =
        "weft cluster init --origin /lustre/weft\n"
        "weft cluster init --dry-run\n"
        "weft cluster init --dir /scratch/job --uses 3\n",
    .json = "{token, endpoint, uses, expires}\n",
    .interrupted = "the node is not set up",
};

class ClusterInitCommand final : public Command {
 public:
  void declare(OptionSet& options) override {
    node_.declare_node(options);
    token_.declare(options);
    options.value("--cluster", "NAME", cluster_, "the cluster's name in etcd; the default is \"default\"");
    options.value("--origin", "DIR", origin_, "a directory on a file system that all nodes share");
    options.value("--members", "N", members_,
                  "how many members etcd gets as machines join: 1, 3 or 5; the default is 1");
    options.values("--etcd", "URL", access_.endpoints, "an endpoint of your site's etcd, such as https://etcd1:2379");
    options.value("--etcd-prefix", "TEXT", access_.prefix, "the prefix of the keys in it; the default is /weft");
    options.value("--etcd-user", "NAME", access_.user, "the user in it");
    options.value("--etcd-password-file", "FILE", password_file_, "the file with the password of the user");
    options.value("--etcd-ca", "FILE", ca_file_, "certificates of the authorities that sign its certificate");
    options.value("--etcd-cert", "FILE", cert_file_, "a client certificate for it");
    options.value("--etcd-key", "FILE", key_file_, "the key of the client certificate");
  }

  Status check_usage() override {
    WEFT_CHECK(node_.check());
    WEFT_CHECK(token_.check());
    const bool has_access = !access_.prefix.empty() || !access_.user.empty() || !password_file_.empty() ||
                            !ca_file_.empty() || !cert_file_.empty() || !key_file_.empty();
    const auto count = parse_u64(members_);
    if (!count || (*count != 1 && *count != 3 && *count != 5))
      return Error{Errc::invalid, fmt::format("--members: expected 1, 3 or 5, got \"{}\"", printable(members_))};
    if (*count > 1 && !access_.endpoints.empty())
      return Error{Errc::invalid, "--members: expected no --etcd with it: your site's etcd has members of its own"};
    members_count_ = *count;
    if (has_access && access_.endpoints.empty())
      return Error{Errc::invalid, "--etcd-…: expected --etcd with it, an endpoint of your site's etcd"};
    return {};
  }

  Result<int> run(Context& context) override {
    const auto began = std::chrono::steady_clock::now();
    WEFT_TRY(const setup::Places places, node_.places(context));
    WEFT_TRY(setup::NodeParts parts, make_parts(context));
    const setup::Plan plan = setup::node_plan(places, parts);
    if (node_.dry_run) {
      context.print("{}", setup::plan_text(plan));
      return kExitDone;
    }
    WEFT_TRY(setup::NodeSetup setup, setup::NodeSetup::begin(places));
    WEFT_CHECK(setup::NodeSetup::check(plan));
    WEFT_CHECK(check_before(parts));
    WEFT_CHECK(setup.carry_out(plan));
    WEFT_CHECK(wait_ready(context, places, parts.listen, false));
    WEFT_CHECK(setup.finish());
    if (!context.quiet)
      context.note(fmt::format("{} reads and publishes: the cluster is there after {:.1f} s", parts.name,
                               std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()));
    WEFT_TRY(const setup::Token token, first_token(parts, plan.join));
    print_token(context, token, token_);
    return kExitDone;
  }

 private:
  static std::uint64_t now_s() { return now_ns() / 1'000'000'000; }

  Result<setup::JoinPlace> choose_listen() const {
    WEFT_TRY(auto given, node_.given_listen());
    if (given) return *std::move(given);
    auto host = own_main_address();
    if (!host.ok())
      return Error{host.error().code,
                   fmt::format("{}; give the address for other nodes by --listen", host.error().message)};
    return setup::JoinPlace{*std::move(host), setup::kListenPort};
  }

  Result<setup::NodeParts> make_parts(const Context& context) {
    setup::NodeParts parts;
    parts.name = node_.node_name();
    parts.cluster = cluster_;
    parts.origin = origin_;
    WEFT_TRY(parts.listen, choose_listen());
    WEFT_TRY(parts.weftd, node_program(context, "weftd", "install the package weftd"));
    parts.cluster_key = random_bytes();
    WEFT_TRY(const setup::Authority authority, setup::Authority::make(fmt::format("weft {}", cluster_), now_s()));
    parts.first.emplace(setup::FirstNode{members_count_, authority.files(), {}});
    setup::random_fill(std::as_writable_bytes(std::span(parts.first->token_key.bytes)));
    WEFT_CHECK(access_.endpoints.empty() ? add_own_etcd(context, authority, parts) : add_site_etcd(parts));
    return parts;
  }

  static std::string random_bytes() {
    std::string bytes(setup::TokenKey().bytes.size(), '\0');
    setup::random_fill(std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }

  static Status add_own_etcd(const Context& context, const setup::Authority& authority, setup::NodeParts& parts) {
    parts.member.emplace();
    WEFT_TRY(parts.member->program,
             node_program(context, "etcd", "install etcd-server, or name your site's etcd by --etcd"));
    parts.member->cluster_token = random_hex(16);
    parts.member->initial_cluster =
        fmt::format("{}={}", parts.name, setup::etcd_url(setup::place_after(parts.listen, setup::kEtcdPeerPortStep)));
    parts.etcd.endpoints = {setup::etcd_url(setup::place_after(parts.listen, setup::kEtcdPortStep))};
    parts.etcd.ca = authority.files().certificate;
    parts.etcd.key = setup::make_private_key();
    WEFT_TRY(const std::string request, setup::certificate_request(parts.etcd.key, parts.name));
    WEFT_TRY(parts.etcd.certificate, authority.sign(request, {parts.name, {parts.listen.host}}, now_s()));
    return {};
  }

  Status add_site_etcd(setup::NodeParts& parts) {
    parts.etcd = access_;
    const auto read = [](const std::string& path, std::string& into) -> Status {
      if (path.empty()) return {};
      WEFT_TRY(into, setup::read_setup_file(path));
      return {};
    };
    WEFT_CHECK(read(ca_file_, parts.etcd.ca));
    WEFT_CHECK(read(cert_file_, parts.etcd.certificate));
    WEFT_CHECK(read(key_file_, parts.etcd.key));
    WEFT_CHECK(read(password_file_, parts.etcd.password));
    parts.etcd.password = parts.etcd.password.substr(0, parts.etcd.password.find('\n'));
    return {};
  }

  // Asks your site's etcd, and looks whether other programs have the ports.
  Status check_before(const setup::NodeParts& parts) const {
    std::vector<std::uint16_t> steps{0, setup::kJoinPortStep};
    if (parts.member) steps.insert(steps.end(), {setup::kEtcdPortStep, setup::kEtcdPeerPortStep});
    WEFT_CHECK(check_ports_free(parts.listen, steps));
    if (parts.member) return {};
    EtcdOptions options;
    options.endpoints = parts.etcd.endpoints;
    options.cluster = parts.cluster;
    if (!parts.etcd.prefix.empty()) options.prefix = parts.etcd.prefix;
    options.user = parts.etcd.user;
    options.password = parts.etcd.password;
    options.ca = ca_file_;
    options.cert = cert_file_;
    options.key = key_file_;
    const auto wrong = check_cluster(nullptr, options);
    return wrong.empty() ? Status{} : Status{wrong.front()};
  }

  Result<setup::Token> first_token(const setup::NodeParts& parts, const std::string& endpoint) const {
    WEFT_TRY(const Digest key, setup::public_key_digest(parts.first->authority.certificate));
    return setup::make_token({key, endpoint, now_s() + token_.valid_s, token_.uses_count}, parts.first->token_key);
  }

  NodeOptions node_;
  TokenOptions token_;
  std::string cluster_ = "default";
  std::string members_ = "1";
  std::uint64_t members_count_ = 1;
  std::string origin_;
  setup::EtcdAccess access_;
  std::string password_file_, ca_file_, cert_file_, key_file_;
};

}  // namespace

constinit const CommandEntry kClusterInitCommand = {kClusterInitInfo, make<ClusterInitCommand>};

}  // namespace weft
