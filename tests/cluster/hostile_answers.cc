#include "hostile_answers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <variant>
#include <vector>

#include "blobs/open_blobs.h"
#include "diskformat/toc.h"
#include "peers/messages.h"
#include "testing.h"

namespace weft::hostile {
namespace {

constexpr std::array<std::string_view, 12> kFaults{"miscoded", "mistabled", "none",   "wrong",   "short",    "long",
                                                   "much",     "gone",      "silent", "digests", "manifest", "holders"};
constexpr std::size_t kMuch = 1U << 20U;

class WindowElsewhere final : public Window {
 public:
  explicit WindowElsewhere(std::unique_ptr<Window> real) : real_(std::move(real)) {}
  RemoteWindow remote() const override {
    RemoteWindow told = real_->remote();
    told.key ^= 1;
    return told;
  }

 private:
  std::unique_ptr<Window> real_;
};

Result<PeerReply> with_much_more(PeerReply reply) {
  while (reply.windows.size() < kAnswerWindowsMax - 1) {
    WEFT_TRY(auto more, WindowMemory::of_bytes(std::vector<std::byte>(kMuch)));
    reply.windows.push_back(std::move(more));
  }
  return reply;
}

}  // namespace

bool is_fault(std::string_view name) {
  return is_member_fault(name) || std::ranges::find(kFaults, name) != kFaults.end();
}

std::vector<std::byte> in_windows(const PeerReply& reply) {
  std::vector<std::byte> out;
  for (const auto& window : reply.windows) out.insert(out.end(), window->bytes().begin(), window->bytes().end());
  return out;
}

Result<std::vector<OpenPlace>> StoredBytes::here(std::span<const ChunkRun> runs) {
  if (lacks_) return std::vector<OpenPlace>(runs.size());
  std::vector<ContentId> ids;
  for (const ChunkRun& run : runs) ids.push_back(run.id);
  WEFT_TRY(auto places, open_present_blobs(store_, ids));
  for (std::size_t i = 0; i < runs.size(); ++i) places[i].offset += runs[i].offset();
  return places;
}

Result<std::vector<Digest>> StoredBytes::digests(const ContentId& id) {
  WEFT_TRY(const OpenPlace place, store_.open_blob(id));
  WEFT_TRY(const PackToc toc, read_toc_of(store_.directory(), place.pack->id()));
  const PackEntry* listed = find_entry(toc, id, place.offset);
  if (listed == nullptr) return Error{Errc::not_found, "no such blob"};
  return listed->chunks;
}

HostileAnswers::HostileAnswers(Store& store, std::string fault)
    : fault_(std::move(fault)), bytes_(store, fault_ == kLacksAll), answers_(store, directory_, coding_) {
  if (is_member_fault(fault_)) member_.emplace(store, bytes_, fault_);
  answers_.begin(bytes_, member_ ? &*member_ : nullptr);
}

// A member of a swarm has no other fault.
void HostileAnswers::receive(std::string_view node, std::span<const std::byte> request, PendingReply reply) {
  if (member_) return answers_.receive(node, request, std::move(reply));
  reply.give(answer(node, request));
}

Result<PeerReply> HostileAnswers::answer(std::string_view node, std::span<const std::byte> request) {
  WEFT_TRY(const PeerRequest asked, decode_request(request));
  if (!concerns(asked)) return answers_.answer(node, request);
  if (fault_ == "silent") std::this_thread::sleep_for(std::chrono::seconds(30));
  WEFT_TRY(PeerReply reply, answers_.answer(node, request));
  return spoiled(std::move(reply));
}

bool HostileAnswers::concerns(const PeerRequest& asked) const {
  if (fault_ == "none" || fault_ == "gone") return false;
  if (fault_ == "digests") return std::holds_alternative<AskChunks>(asked);
  if (fault_ == "manifest") return std::holds_alternative<AskManifest>(asked);
  if (fault_ == "holders") return std::holds_alternative<AskHolders>(asked);
  const auto* ask = std::get_if<AskBytes>(&asked);
  if (fault_ == "miscoded" || fault_ == "mistabled") return ask != nullptr && !ask->bases.empty();
  return ask != nullptr;
}

Result<PeerReply> HostileAnswers::spoiled(PeerReply reply) const {
  if (fault_ == "much") return with_much_more(std::move(reply));
  if (fault_ == "miscoded") return miscoded(std::move(reply));
  if (fault_ == "mistabled") {
    reply.head.front() ^= std::byte{1};
    return reply;
  }
  const bool in_head = reply.windows.empty();
  std::vector<std::byte> bytes = in_head ? std::move(reply.head) : in_windows(reply);
  if (fault_ == "short" && !bytes.empty()) bytes.pop_back();
  if (fault_ == "long") bytes.push_back({});
  if (fault_ == "wrong" && !bytes.empty()) bytes[bytes.size() / 2] ^= std::byte{1};
  if (fault_ == "digests" || fault_ == "manifest" || fault_ == "holders")
    bytes = testing::random_bytes(std::max<std::size_t>(bytes.size(), 32), bytes.size());
  if (in_head || bytes.empty()) return PeerReply{std::move(bytes), {}};
  reply.windows.clear();
  WEFT_TRY(auto window, WindowMemory::of_bytes(bytes));
  reply.windows.push_back(std::move(window));
  return reply;
}

// Changes the last byte of the coded chunks, which then decode to other bytes or do not decode.
Result<PeerReply> HostileAnswers::miscoded(PeerReply reply) {
  if (reply.windows.empty()) {
    reply.head.back() ^= std::byte{1};
    return reply;
  }
  const auto given = reply.windows.front()->bytes();
  std::vector<std::byte> bytes(given.begin(), given.end());
  bytes.back() ^= std::byte{1};
  WEFT_TRY(reply.windows.front(), WindowMemory::of_bytes(bytes));
  return reply;
}

Result<std::unique_ptr<Window>> NoWindows::open_window(std::span<const std::byte> memory) {
  WEFT_TRY(auto real, TappedTransport::open_window(memory));
  return std::unique_ptr<Window>(std::make_unique<WindowElsewhere>(std::move(real)));
}

}  // namespace weft::hostile
