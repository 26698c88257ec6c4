#include "cli/cluster/node.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "cli/shared/daemon_call.h"
#include "cluster_setup/private_files.h"
#include "daemon_api/control_messages.h"
#include "os/lookups/own_address.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kValidSecondsMax = 30ULL * 86'400;
constexpr auto kReadyPatience = std::chrono::seconds(60);
constexpr auto kReadyPause = std::chrono::milliseconds(100);
constexpr std::uint16_t kListenPortMax = std::numeric_limits<std::uint16_t>::max() - setup::kEtcdPeerPortStep;

bool is_node_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= limits::kJoinNameMax && std::ranges::all_of(name, is_plain);
}

// Returns the last line of a log, for a message; "" without one.
std::string last_line(const std::string& path) {
  const auto text = setup::read_setup_file(path);
  if (!text.ok()) return "";
  const auto lines = split(trimmed(*text, "\n"), '\n');
  return printable(lines.back(), 400);
}

// Returns why a program that a start script has started runs no more; nothing while it runs.
std::optional<std::string> end_of(const setup::Places& places, const std::string& name) {
  if (places.base.empty()) return std::nullopt;
  const auto text = setup::read_setup_file(fmt::format("{}/{}.pid", places.run, name));
  const auto pid = text.ok() ? parse_u64(trimmed(*text, "\n")) : std::nullopt;
  if (!pid || stat_file(fmt::format("/proc/{}/exe", *pid)).ok()) return std::nullopt;
  return fmt::format("{} has ended: {}", name, last_line(fmt::format("{}/{}.log", places.run, name)));
}

// Returns the trouble with the registry that the daemon reports. The text is empty if the daemon reports none.
std::string registry_trouble(const Context& context, control::Client& daemon) {
  const auto answer = context.ask(daemon, "status", "{}");
  const JsonValue* const registry = answer.ok() ? answer->body.find("registry") : nullptr;
  const auto trouble = registry == nullptr ? Result<std::string>(std::string()) : registry->text("trouble");
  return trouble.ok() ? *trouble : "";
}

// Describes a daemon that may not listen yet.
struct Look {
  std::optional<ReadyNode> ready;
  std::string why;  // it is not ready
};
Look look_at(Context& context, const std::string& address, bool other) {
  const auto daemon = context.daemon();
  if (!daemon.ok()) return {{}, daemon.error().message};
  if (!*daemon) return {{}, "weftd does not answer yet"};
  const auto list = call_daemon<PeerList>(context, **daemon, "peers", Nothing{});
  if (!list.ok()) return {{}, list.error().message};
  const auto is_own = [&](const PeerEntry& peer) { return peer.address.find(address) != std::string::npos; };
  const bool has_own = std::ranges::any_of(list->peers, is_own);
  if (has_own && (!other || list->peers.size() > 1)) return {ReadyNode{list->peers.size()}, {}};
  std::string trouble = registry_trouble(context, **daemon);
  if (trouble.empty()) trouble = has_own ? "no other node is there" : "the node is not in the registry yet";
  return {{}, std::move(trouble)};
}

}  // namespace

void NodeOptions::declare_place(OptionSet& options) {
  options.value("--dir", "DIR", directory,
                "the node below DIR, without systemd, as any user; the default is the node of this machine");
}

void NodeOptions::declare_node(OptionSet& options) {
  declare_place(options);
  options.value("--name", "NAME", name, "the node's name; the default is the host name");
  options.value("--listen", "HOST[:PORT]", listen,
                fmt::format("the node's address for other nodes; the default port is {}", setup::kListenPort));
  options.flag("--dry-run", dry_run, "print files and commands, and change nothing");
}

Status NodeOptions::check() const {
  if (!name.empty() && !is_node_name(name))
    return Error{Errc::invalid,
                 fmt::format("--name: expected letters, digits, '.', '-' and '_', got \"{}\"", printable(name))};
  if (std::ranges::any_of(directory, [](char c) { return static_cast<unsigned char>(c) < ' '; }))
    return Error{Errc::invalid, "--dir: expected a path without control characters"};
  WEFT_CHECK(given_listen());
  return {};
}

Result<setup::Places> NodeOptions::places(const Context& context) const {
  if (!directory.empty())
    return setup::places_below(
        std::filesystem::path(std::filesystem::absolute(directory) / "").lexically_normal().parent_path().string());
  if (!context.environment().is_root && !dry_run)
    return Error{Errc::permission, "expected root, who sets up the node of this machine, or --dir DIR"};
  return context.store_option.empty() ? setup::system_places()
                                      : setup::system_places(std::filesystem::absolute(context.store_option).string());
}

std::string NodeOptions::node_name() const {
  if (!name.empty()) return name;
  const std::string host = host_name();
  return is_node_name(host) ? host : "node";
}

Result<std::optional<setup::JoinPlace>> NodeOptions::given_listen() const {
  if (listen.empty()) return std::optional<setup::JoinPlace>();
  auto place = setup::parse_place(listen);
  if (!place.ok()) place = setup::parse_place(fmt::format("{}:{}", listen, setup::kListenPort));
  if (!place.ok()) place = setup::parse_place(fmt::format("[{}]:{}", listen, setup::kListenPort));
  if (place.ok() && place->port <= kListenPortMax) return std::optional(*std::move(place));
  return Error{Errc::invalid, fmt::format("--listen: expected HOST or HOST:PORT, with a port up to {}, got \"{}\"",
                                          kListenPortMax, printable(listen))};
}

void TokenOptions::declare(OptionSet& options) {
  options.value("--uses", "N", uses, "how many machines may join by the token; the default is 1");
  options.value("--valid", "TIME", valid, "how long the token holds, such as 10m or 2h; the default is 1h");
}

Status TokenOptions::check() {
  const auto count = parse_u64(uses);
  if (!count || *count == 0 || *count > std::numeric_limits<std::uint16_t>::max())
    return Error{Errc::invalid, fmt::format("--uses: expected a number from 1, got \"{}\"", printable(uses))};
  const auto seconds = parse_time(valid, kValidSecondsMax);
  if (!seconds || *seconds == 0)
    return Error{Errc::invalid,
                 fmt::format("--valid: expected a time up to 30d, such as 10m or 2h, got \"{}\"", printable(valid))};
  uses_count = static_cast<std::uint16_t>(*count);
  valid_s = *seconds;
  return {};
}

Result<std::string> node_program(const Context& context, const std::string& name, std::string_view remedy) {
  const auto found = find_program(name, own_program(), context.environment().variable("PATH").value_or(""));
  if (found) return std::filesystem::absolute(*found).lexically_normal().string();
  return Error{Errc::not_found, fmt::format("no program {} here: {}", name, remedy)};
}

Status check_ports_free(const setup::JoinPlace& first, const std::vector<std::uint16_t>& steps) {
  for (const std::uint16_t step : steps) {
    const setup::JoinPlace place = setup::place_after(first, step);
    WEFT_CHECK(check_own_address(place.host, place.port));
  }
  return {};
}

Result<ReadyNode> wait_ready(Context& context, const setup::Places& places, const setup::JoinPlace& listen,
                             bool other) {
  context.store_option = places.store;
  const std::string address = setup::place_text(listen);
  const auto end = std::chrono::steady_clock::now() + kReadyPatience;
  for (;;) {
    auto [ready, why] = look_at(context, address, other);
    if (ready) return *ready;
    for (const char* const name : {"etcd", "weftd"})
      if (const auto ended = end_of(places, name)) return Error{Errc::io, *ended};
    if (context.environment().interrupt != 0) return Error{Errc::cancelled, "interrupted"};
    if (std::chrono::steady_clock::now() > end)
      return Error{Errc::timed_out, fmt::format("the node does not take part in the cluster after {} s: {}",
                                                kReadyPatience.count(), why)};
    std::this_thread::sleep_for(kReadyPause);
  }
}

void print_token(const Context& context, const setup::Token& token, const TokenOptions& options) {
  const std::string text = setup::token_text(token);
  if (context.json) {
    JsonWriter json;
    json.begin_object().member("token", text).member("endpoint", token.endpoint);
    json.member("uses", std::uint64_t{token.uses}).member("expires", utc_time(token.expires_s * 1'000'000'000));
    return context.print_json(json.end_object());
  }
  if (!context.quiet)
    context.note(
        fmt::format("on {} within {}, run this as root, or with --dir DIR:",
                    options.uses_count == 1 ? "another machine" : fmt::format("{} other machines", options.uses_count),
                    options.valid));
  context.print("weft cluster join {}\n", text);
}

}  // namespace weft
