#include "hostile_requests.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "peers/messages.h"
#include "peers/swarm/version_units.h"
#include "swarm/unit_set.h"
#include "testing.h"

namespace weft::hostile {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 8;  // requests between two pauses
constexpr auto kPause = 1ms;
constexpr std::size_t kKept = 48;  // answers that a name leaves open, if it closes the others

struct Known {
  Digest manifest;
  std::uint32_t units = 0;
};

Digest digest(std::size_t number) {
  Digest out;
  const auto bytes = testing::random_bytes(sizeof out, number);
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(&out, 1)).begin());
  return out;
}

Want want(const Digest& manifest, std::vector<std::byte> has) {
  Want out;
  out.manifest = manifest;
  out.has = std::move(has);
  return out;
}

PeerRequest want_unknown(const Known& /*known*/, std::size_t number) {
  return want(digest(number), std::vector<std::byte>(kUnitSetBytesMax));
}

PeerRequest want_oversized(const Known& known, std::size_t /*number*/) {
  return want(known.manifest, std::vector<std::byte>(kUnitSetBytesMax));
}

PeerRequest want_all(const Known& known, std::size_t number) {
  Want out = want(known.manifest, UnitSet(known.units).encode());
  out.hungry = true;
  out.of_source = number % 2 == 0;
  out.traffic = Traffic::foreground;
  return out;
}

PeerRequest join(const Known& /*known*/, std::size_t number) {
  return Join{digest(number), {}};
}

struct Attack {
  std::string_view name;
  PeerRequest (*request)(const Known& known, std::size_t number);
  bool closes;  // the older answers, so that the daemon does not refuse more requests of the same name
};

constexpr std::array kAttacks{
    Attack{"unknown", want_unknown, true},
    Attack{"oversized", want_oversized, true},
    Attack{"unclosed", want_all, false},
    Attack{"joins", join, true},
};

Result<Known> version_of(Store& has) {
  WEFT_TRY(const Digest manifest, first_manifest(has));
  WEFT_TRY(const auto version, LocalVersionUnits(has).find(manifest));
  return Known{manifest, version->count()};
}

}  // namespace

bool is_request(std::string_view what) {
  return std::ranges::find(kAttacks, what, &Attack::name) != kAttacks.end();
}

Status Askers::open(const Victim& victim, const std::string& key_file) {
  WEFT_TRY(const net::Secret key, net::read_cluster_key(key_file));
  WEFT_CHECK(line_.open(victim));
  for (std::size_t i = 0; i < kNames; ++i) {
    talks_.push_back(std::make_unique<Talk>(line_, fmt::format("asker{}", i), i + 1));
    WEFT_CHECK(talks_.back()->open(key));
  }
  return {};
}

Status Askers::send(std::string_view what, std::size_t count, Store& has) {
  const Attack& attack = *std::ranges::find(kAttacks, what, &Attack::name);
  WEFT_TRY(const Known known, version_of(has));
  for (std::size_t i = 0; i < count; ++i) {
    Talk& talk = *talks_[i % kNames];
    const std::uint64_t call = i / kNames + 1;
    WEFT_CHECK(talk.say(net::CallMessage{call, encode_request(attack.request(known, i))}));
    if (attack.closes && call > kKept) WEFT_CHECK(talk.say(net::DoneMessage{call - kKept, 0}));
    ++sent_;
    if (i % kAtOnce == 0) std::this_thread::sleep_for(kPause);
  }
  return {};
}

}  // namespace weft::hostile
