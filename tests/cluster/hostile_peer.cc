// A hostile peer, for tests against real daemons.
//   weft_hostile_peer serve FAULT STORE KEY PROVIDER HOST PORT
//     serves STORE as the node it belongs to, with a fault (hostile_answers.h); prints "ready", ends with its input
//   weft_hostile_peer replay TIMES STORE KEY PROVIDER HOST NODE ADDRESS
//   weft_hostile_peer noise COUNT PROVIDER HOST ADDRESS
//   weft_hostile_peer crowd COUNT KEY PROVIDER HOST ADDRESS
//     attack the daemon NODE at ADDRESS (hostile_frames.h), print what they sent as JSON; KEY of crowd may be empty
//   weft_hostile_peer close WHAT KEY PROVIDER HOST NODE ADDRESS
//     ends a session (hostile_session.h), prints how soon as JSON
//   weft_hostile_peer greet PROVIDER HOST ADDRESS
//     sends a hello with a key that is not the cluster's (hostile_session.h)
// HOST is the address of this process. STORE has the requested content. Exit code 1 and a message on an error.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "hostile_answers.h"
#include "hostile_frames.h"
#include "hostile_session.h"
#include "net/calls/exchange.h"
#include "peers/address.h"

namespace weft::hostile {
namespace {

using Words = std::span<const std::string>;

Result<PeerAddress> peer_at(const std::string& node, const std::string& address) {
  const auto parsed = parse_endpoint(address);
  if (!parsed) return Error{Errc::invalid, fmt::format("{}: no address", address)};
  return PeerAddress{node, *parsed};
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
  WEFT_TRY(const auto exchange,
           net::open_exchange(options, [&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
             WEFT_TRY(auto real, open_fabric_transport({words[3], words[4], port, std::move(receiver)}));
             if (fault != "gone") return real;
             return std::unique_ptr<Transport>(std::make_unique<NoWindows>(std::move(real)));
           }));
  fmt::print("ready\n");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  std::_Exit(0);  // no wait for threads with silent answers
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
  if (words.size() == 7 && words[0] == "serve") return serve(words.subspan(1));
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
  return Error{Errc::invalid, "expected serve, replay, noise, crowd, close or greet with their words"};
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
