#include "hostile_session.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "hostile_talk.h"
#include "testing.h"

namespace weft::hostile {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kPatience = 10s;
constexpr auto kSilence = 300ms;  // an answer would come within this time
constexpr std::array<std::string_view, 5> kSayings{"garbled", "truncated", "again", "nonsense", "backwards"};

Result<Frame> saying(Talk& talk, const Frame& answered, std::string_view what) {
  if (what == "again") return answered;
  if (what == "nonsense") return talk.sealed(testing::random_bytes(256, 1));
  if (what == "backwards") return talk.sealed(net::KnownMessage{1, 1, net::CallState::in_work});
  WEFT_TRY(Frame frame, talk.sealed(net::AskMessage{99}));
  if (what == "truncated")
    frame.resize(frame.size() - 1);
  else
    frame.back() ^= std::byte{1};
  return frame;
}

}  // namespace

bool ends_a_session(std::string_view what) {
  return std::ranges::find(kSayings, what) != kSayings.end();
}

Result<Closed> close_session(const Victim& victim, const std::string& key_file, std::string_view what) {
  WEFT_TRY(const net::Secret key, net::read_cluster_key(key_file));
  Line line;
  WEFT_CHECK(line.open(victim));
  Talk talk(line);
  WEFT_CHECK(talk.open(key));
  WEFT_TRY(const Frame question, talk.ask());
  WEFT_TRY(const auto answer, talk.heard(kPatience));
  if (answer != net::FrameKind::message) return silence();
  WEFT_TRY(const Frame bad, saying(talk, question, what));
  Closed closed;
  const auto begin = Clock::now();
  WEFT_CHECK(talk.say(bad));
  for (;;) {
    WEFT_TRY(const auto kind, talk.heard(kPatience));
    if (!kind) return silence();
    if (*kind == net::FrameKind::close) break;
    ++closed.answers;
  }
  closed.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  WEFT_CHECK(talk.ask().ok() ? Status{} : Status{silence()});
  for (;;) {
    WEFT_TRY(const auto kind, talk.heard(kSilence));
    if (!kind) return closed;
    ++closed.answers;
  }
}

Status greet_with_another_key(const Victim& victim) {
  Line line;
  WEFT_CHECK(line.open(victim));
  Talk talk(line);
  const Status opened = talk.open(net::Secret(net::random_bytes()));
  if (opened.ok()) return Error{Errc::internal, "a session without the cluster's key"};
  if (opened.error().code != Errc::permission) return opened.error();
  return {};
}

}  // namespace weft::hostile
