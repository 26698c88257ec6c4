// A hostile peer, for tests against real daemons.
//   weft_hostile_peer serve FAULT STORE KEY PROVIDER HOST PORT [NODE ADDRESS]...
//     serves STORE as the node it belongs to, with a fault (hostile_answers.h). It first joins the swarm of the version
//     of STORE at each directory node NODE. With whole-lacking it announces there instead, again and again, that it has
//     the whole version
//   weft_hostile_peer ask WHAT COUNT STORE KEY PROVIDER HOST NODE ADDRESS
//     makes requests of swarms (hostile_requests.h), about the version of STORE, and keeps their sessions
// "serve" and "ask" print "ready" and end with their input. For each of its lines they print what they heard, as JSON.
//   weft_hostile_peer replay TIMES STORE KEY PROVIDER HOST NODE ADDRESS
//   weft_hostile_peer noise COUNT PROVIDER HOST ADDRESS
//   weft_hostile_peer crowd COUNT KEY PROVIDER HOST ADDRESS
//     attack the daemon NODE at ADDRESS (hostile_frames.h), print what they sent as JSON; KEY of crowd may be empty
//   weft_hostile_peer close WHAT KEY PROVIDER HOST NODE ADDRESS
//     ends a session (hostile_session.h), prints how soon as JSON
//   weft_hostile_peer greet PROVIDER HOST ADDRESS
//     sends a hello with a key that is not the cluster's (hostile_session.h)
// HOST is the address of this process. STORE has the requested content. Exit code 1 and a message on an error.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/worker.h"
#include "hostile_answers.h"
#include "hostile_frames.h"
#include "hostile_requests.h"
#include "hostile_session.h"
#include "peers/address.h"
#include "peers/messages.h"
#include "weft/cluster/exchange.h"

namespace weft::hostile {
namespace {

using Words = std::span<const std::string>;

constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::seconds kSayAgain{5};  // before directories drop an announcement

Result<PeerAddress> peer_at(const std::string& node, const std::string& address) {
  const auto parsed = parse_endpoint(address);
  if (!parsed) return Error{Errc::invalid, fmt::format("{}: no address", address)};
  return PeerAddress{node, *parsed};
}

// Ends the process with its input, without a wait for threads with silent answers.
template <typename Told>
[[noreturn]] void stay(const Told& told) {
  fmt::print("ready\n");
  std::fflush(stdout);
  for (int letter = std::getchar(); letter != EOF; letter = std::getchar()) {
    if (letter != '\n') continue;
    fmt::print("{}\n", told());
    std::fflush(stdout);
  }
  std::_Exit(0);
}

std::string text_of(const HostileMember::Heard& heard) {
  std::string wants;
  for (const auto& [node, count] : heard.wants)
    wants += fmt::format("{}\"{}\": {}", wants.empty() ? "" : ", ", node, count);
  return fmt::format("{{\"wants\": {{{}}}, \"offers\": {}, \"joins\": {}}}", wants, heard.offers, heard.joins);
}

std::string text_of(const Askers::Heard& heard) {
  return fmt::format(
      "{{\"requests\": {}, \"heard\": {}, \"answers\": {}, \"given\": {}, \"busy\": {}, \"invalid\": {}}}",
      heard.requests, heard.frames, heard.answers, heard.given, heard.busy, heard.invalid);
}

Status join(Exchange& exchange, const Digest& manifest, const PeerAddress& directory) {
  const auto request = encode_request(Join{manifest, {}});
  WEFT_TRY(const auto answer, exchange.call(directory, request, deadline_in(kPatience)));
  const auto partners = decode_partners(answer->head());
  return partners.ok() ? Status{} : Status{partners.error()};
}

Status announce(Exchange& exchange, const Digest& manifest, std::span<const PeerAddress> directories) {
  for (const PeerAddress& directory : directories)
    WEFT_CHECK(exchange.call(directory, encode_request(Announce{manifest, true}), deadline_in(kPatience)));
  return {};
}

// Joins the swarm of the version at each directory node, or announces the version there, `again` and again.
Status appear(Exchange& exchange, Store& store, bool announces, const std::vector<PeerAddress>& directories,
              Worker& again) {
  if (directories.empty()) return {};
  WEFT_TRY(const Digest manifest, first_manifest(store));
  if (!announces) {
    for (const PeerAddress& directory : directories) WEFT_CHECK(join(exchange, manifest, directory));
    return {};
  }
  WEFT_CHECK(announce(exchange, manifest, directories));
  again.start([&exchange, manifest, directories]() -> Result<Worker::Pause> {
    WEFT_CHECK(announce(exchange, manifest, directories));
    return Worker::Pause(kSayAgain);
  });
  return {};
}

// NODE and ADDRESS of each.
Result<std::vector<PeerAddress>> peers_at(Words words) {
  std::vector<PeerAddress> peers;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    WEFT_TRY(PeerAddress peer, peer_at(words[i], words[i + 1]));
    peers.push_back(std::move(peer));
  }
  return peers;
}

Status serve(Words words) {
  const std::string& fault = words[0];
  if (!is_fault(fault)) return Error{Errc::invalid, fmt::format("{}: no fault", fault)};
  WEFT_TRY(const auto store, Store::open(words[1], {}));
  if (!store->cluster()) return Error{Errc::invalid, fmt::format("{}: belongs to no cluster", words[1])};
  HostileAnswers answers(*store, fault);
  ExchangeOptions options;
  options.node = store->cluster()->node;
  options.key_file = words[2];
  options.server = &answers;
  const auto port = static_cast<std::uint16_t>(std::stoul(words[5]));
  options.transports = {[&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
    WEFT_TRY(auto real, open_fabric_transport({words[3], words[4], port, std::move(receiver)}));
    if (fault != "gone") return real;
    return std::unique_ptr<Transport>(std::make_unique<NoWindows>(std::move(real)));
  }};
  WEFT_TRY(const auto exchange, Exchange::open(options));
  WEFT_TRY(const auto directories, peers_at(words.subspan(6)));
  Worker again("announcements");
  WEFT_CHECK(appear(*exchange, *store, fault == kLacksAll, directories, again));
  stay([&] { return text_of(answers.heard()); });
}

Status ask(Words words) {
  if (!is_request(words[0])) return Error{Errc::invalid, fmt::format("{}: no request", words[0])};
  WEFT_TRY(const auto store, Store::open(words[2], {}));
  WEFT_TRY(PeerAddress peer, peer_at(words[6], words[7]));
  Askers askers(words[0]);
  WEFT_CHECK(askers.open({std::move(peer), words[4], words[5]}, words[3]));
  WEFT_CHECK(askers.send(std::stoul(words[1]), *store));
  std::thread([&askers] { askers.hear(); }).detach();  // it ends with the process
  stay([&] { return text_of(askers.heard()); });
}

Status tell(const Result<Sent>& outcome) {
  if (!outcome.ok()) return outcome.error();
  fmt::print("{{\"frames\": {}, \"messages\": {}, \"answers\": {}, \"answers_after\": {}}}\n", outcome->frames,
             outcome->messages, outcome->answers, outcome->answers_after);
  return {};
}

Status close(Words words) {
  if (!ends_a_session(words[0])) return Error{Errc::invalid, fmt::format("{}: ends no session", words[0])};
  WEFT_TRY(PeerAddress peer, peer_at(words[4], words[5]));
  WEFT_TRY(const Closed closed, close_session({std::move(peer), words[2], words[3]}, words[1], words[0]));
  fmt::print("{{\"seconds\": {:.6f}, \"answers\": {}}}\n", closed.seconds, closed.answers);
  return {};
}

Status greet(Words words) {
  WEFT_TRY(PeerAddress peer, peer_at("", words[2]));
  return greet_with_another_key({std::move(peer), words[0], words[1]});
}

Status run(Words words) {
  if (words.size() >= 7 && words.size() % 2 == 1 && words[0] == "serve") return serve(words.subspan(1));
  if (words.size() == 9 && words[0] == "ask") return ask(words.subspan(1));
  if (words.size() == 8 && words[0] == "replay") {
    WEFT_TRY(const auto store, Store::open(words[2], {}));
    WEFT_TRY(PeerAddress peer, peer_at(words[6], words[7]));
    return tell(replay({std::move(peer), words[4], words[5]}, words[3], *store, std::stoul(words[1])));
  }
  if (words.size() == 5 && words[0] == "noise") {
    WEFT_TRY(PeerAddress peer, peer_at("", words[4]));
    return tell(noise({std::move(peer), words[2], words[3]}, std::stoul(words[1])));
  }
  if (words.size() == 6 && words[0] == "crowd") {
    WEFT_TRY(PeerAddress peer, peer_at("", words[5]));
    return tell(crowd({std::move(peer), words[3], words[4]}, words[2], std::stoul(words[1])));
  }
  if (words.size() == 7 && words[0] == "close") return close(words.subspan(1));
  if (words.size() == 4 && words[0] == "greet") return greet(words.subspan(1));
  return Error{Errc::invalid, "expected serve, ask, replay, noise, crowd, close or greet with their words"};
}

}  // namespace
}  // namespace weft::hostile

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const weft::Status done = weft::hostile::run(words);
  if (done.ok()) return EXIT_SUCCESS;
  fmt::print(stderr, "weft_hostile_peer: {}\n", done.error().message);
  return EXIT_FAILURE;
}
