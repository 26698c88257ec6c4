#include "hostile_requests.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "peers/messages.h"
#include "peers/swarm/version_units.h"
#include "swarm/unit_set.h"
#include "testing.h"

namespace weft::hostile {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNames = 64;
constexpr std::size_t kNewcomers = 500;
constexpr std::size_t kAtOnce = 8;  // requests between two pauses
constexpr auto kPause = 1ms;
constexpr auto kPatience = 1s;
constexpr std::size_t kKept = 48;  // answers that a name leaves open, if it closes the others

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

PeerRequest want_unknown(const KnownVersion& /*known*/, std::size_t number) {
  return want(digest(number), std::vector<std::byte>(kUnitSetBytesMax));
}

PeerRequest want_oversized(const KnownVersion& known, std::size_t /*number*/) {
  return want(known.manifest, std::vector<std::byte>(kUnitSetBytesMax));
}

PeerRequest want_undersized(const KnownVersion& known, std::size_t /*number*/) {
  auto has = UnitSet(known.units).encode();
  has.pop_back();
  return want(known.manifest, std::move(has));
}

PeerRequest want_beyond(const KnownVersion& known, std::size_t /*number*/) {
  auto has = UnitSet(known.units).encode();
  has.back() |= std::byte{0x80};
  return want(known.manifest, std::move(has));
}

PeerRequest want_all(const KnownVersion& known, std::size_t number) {
  Want out = want(known.manifest, UnitSet(known.units).encode());
  out.hungry = true;
  out.of_source = number % 2 == 0;
  out.traffic = Traffic::foreground;
  return out;
}

PeerRequest want_of_source(const KnownVersion& known, std::size_t /*number*/) {
  Want out = want(known.manifest, UnitSet(known.units).encode());
  out.hungry = out.of_source = true;
  return out;
}

PeerRequest join_unknown(const KnownVersion& /*known*/, std::size_t number) {
  return Join{digest(number), {}};
}

PeerRequest join(const KnownVersion& known, std::size_t /*number*/) {
  return Join{known.manifest, {}};
}

bool has_unit(const net::AnswerMessage& answer) {
  const auto offer = decode_offer(answer.head);
  return offer.ok() && offer->offer.unit;
}

bool has_partner(const net::AnswerMessage& answer) {
  const auto partners = decode_partners(answer.head);
  return partners.ok() && !partners->nodes.empty();
}

// Messages between the requests. closes_older: older answers are closed, so that the daemon does not refuse more
// requests of the same name. takes_more: each answer is closed, and another request follows.
enum class Besides : std::uint8_t { nothing, closes_older, takes_more };

}  // namespace

struct Attack {
  std::string_view name;
  PeerRequest (*request)(const KnownVersion& known, std::size_t number);
  bool (*gives)(const net::AnswerMessage& answer);  // as Heard::given
  Besides besides;
  std::size_t names = kNames;
  std::size_t at_once = kAtOnce;
};

namespace {

Result<KnownVersion> version_of(Store& has) {
  WEFT_TRY(const Digest manifest, first_manifest(has));
  WEFT_TRY(const auto version, LocalVersionUnits(has).find(manifest));
  if (version->count() % 8 == 0) return Error{Errc::invalid, "a set of all units of the version has no bit to spare"};
  return KnownVersion{manifest, version->count()};
}

constexpr std::array kAttacks{
    Attack{"unknown", want_unknown, has_unit, Besides::closes_older},
    Attack{"oversized", want_oversized, has_unit, Besides::closes_older},
    Attack{"undersized", want_undersized, has_unit, Besides::closes_older},
    Attack{"beyond", want_beyond, has_unit, Besides::closes_older},
    Attack{"unclosed", want_all, has_unit, Besides::nothing},
    Attack{"takes", want_of_source, has_unit, Besides::takes_more},
    Attack{"joins", join_unknown, has_partner, Besides::closes_older},
    Attack{"newcomers", join, has_partner, Besides::nothing, kNewcomers, 1},
};

}  // namespace

bool is_request(std::string_view what) {
  return std::ranges::find(kAttacks, what, &Attack::name) != kAttacks.end();
}

Askers::Askers(std::string_view what) : attack_(*std::ranges::find(kAttacks, what, &Attack::name)) {}

Status Askers::open(const Victim& victim, const std::string& key_file) {
  WEFT_TRY(const net::Secret key, net::read_cluster_key(key_file));
  WEFT_CHECK(line_.open(victim));
  calls_.resize(attack_.names);
  for (std::size_t i = 0; i < attack_.names; ++i) {
    talks_.push_back(std::make_unique<Talk>(line_, fmt::format("asker{}", i), i + 1));
    WEFT_CHECK(talks_.back()->open(key));
  }
  return {};
}

Status Askers::send(std::size_t count, Store& has) {
  WEFT_TRY(known_, version_of(has));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t name = i % attack_.names;
    WEFT_CHECK(ask(name));
    if (attack_.besides == Besides::closes_older && calls_[name] > kKept)
      WEFT_CHECK(talks_[name]->say(net::DoneMessage{calls_[name] - kKept, 0}));
    if (i % attack_.at_once == 0) std::this_thread::sleep_for(kPause);
  }
  return {};
}

Status Askers::ask(std::size_t name) {
  std::size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = heard_.requests++;
  }
  return talks_[name]->say(net::CallMessage{++calls_[name], encode_request(attack_.request(known_, number))});
}

void Askers::hear() {
  for (;;) {
    const auto received = line_.next(kPatience);
    if (!received) continue;
    const auto frame = net::parse_frame(*received);
    if (!frame.ok() || frame->header.session == 0 || frame->header.session > talks_.size()) continue;
    const auto name = static_cast<std::size_t>(frame->header.session - 1);
    const auto body = talks_[name]->opened(*frame);
    if (body.ok()) count(name, *body);
  }
}

void Askers::count(std::size_t name, const net::CallBody& body) {
  const auto* answer = std::get_if<net::AnswerMessage>(&body);
  const auto* failure = std::get_if<net::FailureMessage>(&body);
  {
    const std::lock_guard lock(mutex_);
    if (failure != nullptr && failure->error.code == Errc::busy) ++heard_.busy;
    if (failure != nullptr && failure->error.code == Errc::invalid) ++heard_.invalid;
    if (answer != nullptr) {
      ++heard_.answers;
      if (attack_.gives(*answer)) ++heard_.given;
    }
  }
  if (attack_.besides == Besides::takes_more) take_more(name, body);
}

void Askers::take_more(std::size_t name, const net::CallBody& body) {
  if (const auto* answer = std::get_if<net::AnswerMessage>(&body)) {
    std::uint64_t bytes = 0;
    for (const RemoteWindow& window : answer->windows) bytes += window.length;
    if (bytes > 0) static_cast<void>(talks_[name]->say(net::DoneMessage{answer->id, bytes}));
  } else if (!std::holds_alternative<net::FailureMessage>(body)) {
    return;
  }
  static_cast<void>(ask(name));
  std::this_thread::sleep_for(kPause);
}

Askers::Heard Askers::heard() const {
  const std::lock_guard lock(mutex_);
  Heard heard = heard_;
  heard.frames = line_.heard();
  return heard;
}

}  // namespace weft::hostile
