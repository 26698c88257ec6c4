// Shared by the tests of exchanges: a server that answers as the request says, keys, nodes.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tapped_transport.h"
#include "testing.h"
#include "transport_worlds.h"
#include "weft/cluster/exchange.h"

namespace weft::conformance {

using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::seconds kPatience{10};  // how long a broken exchange makes a test wait

inline Deadline soon() {
  return Clock::now() + kPatience;
}

// Polls until the condition holds; false after kPatience. A working exchange needs no help to get there.
inline bool comes_true(const std::function<bool()>& holds) {
  for (const auto end = soon(); Clock::now() < end; std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (holds()) return true;
  return holds();
}

// Answers "echo TEXT", "bytes" (a window on `content`), "file" (a window on a file with `content`), "head" (`content`
// as the head), "fail", and "wait" (after release() is called).
class ScriptedServer final : public PeerServer {
 public:
  std::vector<std::byte> content = testing::random_bytes(300'000, 11);
  std::atomic<int> answered{0};

  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override {
    ++answered;
    const std::string text(testing::as_text(request));
    PeerReply reply;
    if (text == "fail") return Error{Errc::not_found, "no such thing"};
    if (text == "head") reply.head = content;
    if (text == "bytes") reply.windows.push_back(testing::must(WindowMemory::of_bytes(content)));
    if (text == "file") reply.windows.push_back(testing::must(window_on_file()));
    if (text == "wait") wait();
    if (!text.starts_with("echo ")) return reply;
    const std::string said = std::string(node) + " " + text.substr(5);
    const auto head = testing::as_bytes(said);
    reply.head.assign(head.begin(), head.end());
    return reply;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      released_ = true;
    }
    changed_.notify_all();
  }

 private:
  Result<std::unique_ptr<WindowMemory>> window_on_file() const;
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return released_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool released_ = false;  // guarded by mutex_
};

// Records the calls of PeerReply::ended.
class Ends {
 public:
  PeerReply recorded(PeerReply reply);  // returns the reply with an `ended` that this records; this outlives it
  // Waits until there are so many calls, kPatience at most, and returns the bytes of all.
  std::vector<std::uint64_t> after(std::size_t count);
  std::vector<std::uint64_t> now() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> read_bytes_;  // guarded by mutex_
};

// A ScriptedServer whose replies record their ends.
class EndingServer final : public PeerServer {
 public:
  ScriptedServer scripted;
  Ends ends;

  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override {
    WEFT_TRY(PeerReply reply, scripted.answer(node, request));
    return ends.recorded(std::move(reply));
  }
};

// Keeps the replies to requests that begin with "later" until a test takes them. A ScriptedServer answers the others.
class LaterServer final : public PeerServer {
 public:
  ScriptedServer at_once;

  Result<PeerReply> answer(std::string_view node, std::span<const std::byte> request) override {
    return at_once.answer(node, request);
  }
  void receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) override;
  void unwanted(std::string_view node) override;  // drops the kept replies that are unwanted

  bool keeps(std::size_t count);  // waits until it keeps so many replies; false after kPatience
  std::size_t kept() const;
  std::vector<PendingReply> take();  // returns all kept replies
  bool is_told();                    // waits for a call of unwanted() since the last one; false after kPatience

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PendingReply> kept_;  // guarded by mutex_, as the next
  bool is_told_ = false;
};

// A file with the key of a cluster.
class KeyFile {
 public:
  explicit KeyFile(char letter = 'k') : path_(directory_ / "key") {
    testing::write_file(path_, std::string(32, letter));
    set_mode(0600);
  }
  void set_mode(unsigned mode) const;
  const std::string& path() const { return path_; }

 private:
  testing::TempDir directory_;
  std::string path_;
};

using Tap = TappedTransport::Tap;
inline std::unique_ptr<Exchange> open_node(
    TransportWorld& world, const KeyFile& key, const std::string& node, PeerServer* server,
    Tap tap = [](auto) { return true; }) {
  ExchangeOptions options;
  options.node = node;
  options.key_file = key.path();
  options.server = server;
  options.transports = {[&](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
    return std::unique_ptr<Transport>(std::make_unique<TappedTransport>(world.open(std::move(receiver)), tap));
  }};
  return testing::must(Exchange::open(options));
}

inline PeerAddress at(const Exchange& exchange, const std::string& node) {
  return {node, exchange.endpoints().front().address};
}

inline Result<std::unique_ptr<Answer>> ask(Exchange& from, const PeerAddress& peer, std::string_view request,
                                           Deadline deadline = soon()) {
  return from.call(peer, testing::as_bytes(request), deadline);
}

// The outcome of a begun call. A second outcome of a call ends the test program.
using BegunCall = std::future<Result<std::unique_ptr<Answer>>>;
BegunCall begin(Exchange& from, const PeerAddress& peer, std::string_view request,
                std::chrono::milliseconds patience = kPatience);
bool is_over(const BegunCall& call);
Result<std::unique_ptr<Answer>> outcome_of(BegunCall& call);

// A reply with this head, and a window on `content` if that is not empty.
PeerReply reply_of(std::string_view head, std::span<const std::byte> content = {});

// Checks a call of "bytes", made by `call`, whose request is lost, then one whose answer is lost.
void survives_lost_messages(
    TransportWorld& world,
    const std::function<Result<std::unique_ptr<Answer>>(Exchange& from, const PeerAddress& peer)>& call);

// Reads a whole window of an answer, through landing buffers of the exchange.
Result<std::vector<std::byte>> read_all(Exchange& exchange, Answer& answer, std::size_t window = 0);

}  // namespace weft::conformance
