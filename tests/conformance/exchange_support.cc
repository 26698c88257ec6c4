#include "exchange_support.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "os/sys.h"

namespace weft::conformance {

void KeyFile::set_mode(unsigned mode) const {
  REQUIRE(::chmod(path_.c_str(), mode) == 0);
}

Result<std::unique_ptr<WindowMemory>> ScriptedServer::window_on_file() const {
  const testing::TempDir directory;
  testing::write_file(directory / "content", testing::as_text(content));
  WEFT_TRY(const Fd file, open_file(directory / "content", O_RDONLY));
  return WindowMemory::of_file(file.get(), 0, content.size(), nullptr);
}

PeerReply Ends::recorded(PeerReply reply) {
  reply.ended = [this](std::uint64_t read_bytes) {
    {
      const std::lock_guard lock(mutex_);
      read_bytes_.push_back(read_bytes);
    }
    changed_.notify_all();
  };
  return reply;
}

std::vector<std::uint64_t> Ends::after(std::size_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, soon(), [&] { return read_bytes_.size() >= count; });
  return read_bytes_;
}

std::vector<std::uint64_t> Ends::now() const {
  const std::lock_guard lock(mutex_);
  return read_bytes_;
}

void LaterServer::receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) {
  if (!testing::as_text(request).starts_with("later")) return reply.give(answer(node, request));
  {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(reply));
  }
  changed_.notify_all();
}

void LaterServer::unwanted(std::string_view /*node*/) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(kept_, [](const PendingReply& reply) { return !reply.wanted(); });
    is_told_ = true;
  }
  changed_.notify_all();
}

bool LaterServer::keeps(std::size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, soon(), [&] { return kept_.size() == count; });
}

std::size_t LaterServer::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

std::vector<PendingReply> LaterServer::take() {
  const std::lock_guard lock(mutex_);
  return std::move(kept_);
}

bool LaterServer::is_told() {
  std::unique_lock lock(mutex_);
  const bool told = changed_.wait_until(lock, soon(), [&] { return is_told_; });
  is_told_ = false;
  return told;
}

BegunCall begin(Exchange& from, const PeerAddress& peer, std::string_view request, std::chrono::milliseconds patience) {
  const auto outcome = std::make_shared<std::promise<Result<std::unique_ptr<Answer>>>>();
  BegunCall call = outcome->get_future();
  from.begin(peer, testing::as_bytes(request), patience,
             [outcome](Result<std::unique_ptr<Answer>> result) { outcome->set_value(std::move(result)); });
  return call;
}

bool is_over(const BegunCall& call) {
  return call.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

Result<std::unique_ptr<Answer>> outcome_of(BegunCall& call) {
  REQUIRE(call.wait_for(2 * kPatience) == std::future_status::ready);
  return call.get();
}

PeerReply reply_of(std::string_view head, std::span<const std::byte> content) {
  PeerReply reply;
  const auto bytes = testing::as_bytes(head);
  reply.head.assign(bytes.begin(), bytes.end());
  if (!content.empty()) reply.windows.push_back(testing::must(WindowMemory::of_bytes(content)));
  return reply;
}

void survives_lost_messages(
    TransportWorld& world,
    const std::function<Result<std::unique_ptr<Answer>>(Exchange& from, const PeerAddress& peer)>& call) {
  const KeyFile key;
  ScriptedServer server;
  std::atomic<int> lose_at{0};
  std::atomic<int> sent{0};
  const Tap lossy = [&](auto) { return ++sent == lose_at ? 0 : 1; };
  auto a = open_node(world, key, "a", nullptr, lossy);
  auto b = open_node(world, key, "b", &server, lossy);
  REQUIRE(ask(*a, at(*b, "b"), "echo").ok());
  for (const int lost : {1, 2}) {  // loses the request, then the answer
    sent = 0;
    lose_at = lost;
    const auto answer = call(*a, at(*b, "b"));
    lose_at = 0;
    REQUIRE(answer.ok());
    CHECK(testing::must(read_all(*a, **answer)) == server.content);
  }
  CHECK(a->figures().handshakes == 1);
}

Result<std::vector<std::byte>> read_all(Exchange& exchange, Answer& answer, std::size_t window) {
  std::vector<std::byte> out;
  while (out.size() < answer.length(window)) {
    const auto length = std::min<std::size_t>(kLandingBufferBytes, answer.length(window) - out.size());
    WEFT_TRY(const LandingBuffer buffer, exchange.landing(soon()));
    WEFT_TRY(const WindowRead read, answer.read(window, out.size(), buffer.landing(), 0, length));
    WEFT_CHECK(read->wait(soon()));
    const auto came = buffer.bytes().first(length);
    out.insert(out.end(), came.begin(), came.end());
  }
  return out;
}

}  // namespace weft::conformance
