// Exchanges with a second endpoint, for nodes that lack the provider of the first.
#include <atomic>

#include "exchange_support.h"

namespace weft {
namespace {

using namespace conformance;

// A transport with a provider name of its own.
class NamedTransport final : public TappedTransport {
 public:
  NamedTransport(std::string name, std::unique_ptr<Transport> below, Tap tap)
      : TappedTransport(std::move(below), std::move(tap)), name_(std::move(name)) {}
  ~NamedTransport() override { end(); }
  const std::string& provider() const override { return name_; }

 private:
  const std::string name_;
};

// Counts a node's outgoing messages, by provider.
struct Sent {
  std::atomic<int> by_first{0}, by_tcp{0};
};

MakeTransport counted(std::string name, std::function<std::unique_ptr<Transport>(Transport::Receiver)> open,
                      std::atomic<int>& sent) {
  return [=, &sent](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
    const auto count = [&sent](auto) { return ++sent > 0; };
    return std::unique_ptr<Transport>(std::make_unique<NamedTransport>(name, open(std::move(receiver)), count));
  };
}

ExchangeOptions options_of(const std::string& node, const KeyFile& key, PeerServer* server) {
  ExchangeOptions options;
  options.node = node;
  options.key_file = key.path();
  options.server = server;
  return options;
}

// Opens an exchange over the world's provider, under the name "first", and over TCP.
std::unique_ptr<Exchange> open_both(TransportWorld& world, ExchangeOptions options, Sent& sent) {
  const auto first = [&world](Transport::Receiver receiver) { return world.open(std::move(receiver)); };
  const auto tcp = [](Transport::Receiver receiver) { return open_over("auto-tcp", std::move(receiver)); };
  options.transports = {counted("first", first, sent.by_first), counted("over tcp", tcp, sent.by_tcp)};
  return testing::must(Exchange::open(options));
}

PeerAddress endpoint_of(const Exchange& exchange, const std::string& node, std::size_t number) {
  const Endpoint& endpoint = exchange.endpoints()[number];
  return {node, endpoint.address, endpoint.provider};
}

void check_reads(Exchange& from, const PeerAddress& to, const std::vector<std::byte>& content) {
  CAPTURE(to.provider);
  auto answer = ask(from, to, "bytes");
  REQUIRE(answer.ok());
  const auto got = read_all(from, **answer);
  REQUIRE(got.ok());
  CHECK(*got == content);
}

// Begins a call over an endpoint, which the server answers later over the same one. `sent`: by the server, over it.
void check_later_reply(Exchange& from, const PeerAddress& to, LaterServer& server, const std::atomic<int>& sent) {
  CAPTURE(to.provider);
  auto call = begin(from, to, "later");
  REQUIRE(server.keeps(1));
  CHECK(!is_over(call));
  const int before = sent;
  server.take().front().give(reply_of("at last", server.at_once.content));
  const auto answer = outcome_of(call);
  REQUIRE(answer.ok());
  CHECK(sent > before);
  CHECK(testing::as_text((*answer)->head()) == "at last");
  const auto got = read_all(from, **answer);
  REQUIRE(got.ok());
  CHECK(*got == server.at_once.content);
}

// Runs a check in all worlds but the twin's, whose landings work with the twin only.
void in_every_fabric_world(void (*check)(TransportWorld&)) {
  for (const auto& world : transport_worlds()) {
    CAPTURE(world->name());
    if (world->name() != "twin") check(*world);
  }
}

TEST_CASE("a pair reads over the endpoint that the caller names, into memory of the first") {
  in_every_fabric_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    server.content = testing::random_bytes(3'000'000, 4);
    Sent by_a, by_b;
    const auto a = open_both(world, options_of("a", key, nullptr), by_a);
    const auto b = open_both(world, options_of("b", key, &server), by_b);
    REQUIRE(a->endpoints().size() == 2);
    check_reads(*a, endpoint_of(*b, "b", 0), server.content);
    CHECK(by_a.by_first > 0);
    CHECK(by_b.by_first > 0);
    CHECK(by_a.by_tcp + by_b.by_tcp == 0);
    check_reads(*a, endpoint_of(*b, "b", 1), server.content);
    CHECK(by_a.by_tcp > 0);
    CHECK(by_b.by_tcp > 0);
    CHECK(a->figures().read_bytes == 2 * server.content.size());
    CHECK(comes_true([&] { return b->figures().windows == 0; }));
  });
}

TEST_CASE("a begun call gets its later reply over the endpoint that the caller names") {
  in_every_fabric_world([](TransportWorld& world) {
    const KeyFile key;
    LaterServer server;
    Sent by_a, by_b;
    const auto a = open_both(world, options_of("a", key, nullptr), by_a);
    const auto b = open_both(world, options_of("b", key, &server), by_b);
    check_later_reply(*a, endpoint_of(*b, "b", 0), server, by_b.by_first);
    CHECK(by_a.by_tcp + by_b.by_tcp == 0);
    check_later_reply(*a, endpoint_of(*b, "b", 1), server, by_b.by_tcp);
    CHECK(a->figures().begun == 0);
    CHECK(b->figures().answers == 2);
    CHECK(comes_true([&] { return b->figures().pending == 0 && b->figures().windows == 0; }));
  });
}

TEST_CASE("a node with TCP alone and a node with more providers read from each other") {
  in_every_fabric_world([](TransportWorld& world) {
    const KeyFile key;
    ScriptedServer server;
    server.content = testing::random_bytes(300'000, 5);
    Sent by_a, by_c;
    const auto a = open_both(world, options_of("a", key, &server), by_a);
    const auto tcp = [](Transport::Receiver receiver) { return open_over("auto-tcp", std::move(receiver)); };
    ExchangeOptions of_c = options_of("c", key, &server);
    of_c.transports = {counted("over tcp", tcp, by_c.by_tcp)};
    const auto c = testing::must(Exchange::open(of_c));
    check_reads(*c, endpoint_of(*a, "a", 1), server.content);
    check_reads(*a, endpoint_of(*c, "c", 0), server.content);
    CHECK(by_a.by_first == 0);
    CHECK(ask(*c, endpoint_of(*a, "a", 0), "bytes").error().code == Errc::unsupported);
  });
}

}  // namespace
}  // namespace weft
