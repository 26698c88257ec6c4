#include "peers/swarm/swarm_calls.h"

#include <memory>
#include <span>
#include <utility>

namespace weft {
namespace {

// An answer that is all head.
class HeadAnswer final : public Answer {
 public:
  explicit HeadAnswer(std::vector<std::byte> head) : head_(std::move(head)) {}
  std::span<const std::byte> head() const override { return head_; }
  std::size_t windows() const override { return 0; }
  std::uint64_t length(std::size_t /*window*/) const override { return 0; }
  Deadline open_until() const override { return Deadline::max(); }
  Result<WindowRead> read(std::size_t /*window*/, std::uint64_t /*offset*/, std::shared_ptr<Landing> /*landing*/,
                          std::size_t /*at*/, std::size_t /*length*/) override {
    return Error{Errc::permission, "this answer has no windows"};
  }
  Status wait(PendingRead& /*read*/, std::chrono::milliseconds /*patience*/, const OnSign& /*on_sign*/) override {
    return Error{Errc::permission, "this answer has no windows"};
  }
  Deadline keep_open() override { return {}; }

 private:
  const std::vector<std::byte> head_;
};

class DoneTaker final : public ReplyTaker {
 public:
  explicit DoneTaker(CallDone done) : done_(std::move(done)) {}
  void give(Result<PeerReply> reply) override {
    if (!reply.ok()) return done_(reply.error());
    if (!reply->windows.empty()) return done_(Error{Errc::internal, "this node opens no windows for itself"});
    done_(std::unique_ptr<Answer>(std::make_unique<HeadAnswer>(std::move(reply->head))));
  }
  bool wanted() const override { return true; }

 private:
  const CallDone done_;
};

}  // namespace

void call_here(const std::function<void(PendingReply reply)>& serve, CallDone done) {
  serve(PendingReply(std::make_shared<DoneTaker>(std::move(done))));
}

}  // namespace weft
