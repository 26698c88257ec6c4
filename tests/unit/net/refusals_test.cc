#include "net/calls/refusals.h"

#include <doctest/doctest.h>

#include <vector>

#include "log_file.h"

namespace weft::net {
namespace {

using testing::LogFile;

std::string name(std::span<const std::byte> address) {
  return "10.0.0.1:" + std::to_string(std::to_integer<int>(address.front()));
}

std::uint64_t of(const ExchangeFigures& figures, PeerRefusal why) {
  return figures.refusals.at(static_cast<std::size_t>(why));
}

TEST_CASE("refusals are counted by reason, and their sum") {
  Refusals refusals({});
  refusals.count(PeerRefusal::malformed);
  refusals.count(PeerRefusal::wrong_key);
  refusals.count(PeerRefusal::wrong_key);
  ExchangeFigures figures;
  refusals.add_to(figures);
  CHECK(of(figures, PeerRefusal::malformed) == 1);
  CHECK(of(figures, PeerRefusal::wrong_key) == 2);
  CHECK(of(figures, PeerRefusal::crowded) == 0);
  CHECK(figures.refused == 3);
}

TEST_CASE("what only an intruder sends is logged with its address, once a minute for each host") {
  const LogFile log("info");
  Refusals refusals(name);
  const std::vector<std::byte> one{std::byte{1}}, two{std::byte{2}};
  refusals.count(PeerRefusal::malformed, one);
  refusals.count(PeerRefusal::not_authentic, two);  // of the same host
  refusals.count(PeerRefusal::unknown_session, one);
  CHECK(log.has("a message from 10.0.0.1:1 is refused: malformed"));
  CHECK(log.count("is refused") == 1);
  refusals.count(PeerRefusal::malformed);
  CHECK(log.has("a message from an unknown address is refused: malformed"));
}

}  // namespace
}  // namespace weft::net
