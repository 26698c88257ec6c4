// SHA-256 of many messages: by AVX-512 while many messages are left, then in pairs by the SHA instructions. By
// libcrypto if the CPU has neither.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/lanes/sha256_lanes.h"
#include "base/lanes/sha256_wide.h"
#include "base/sha256.h"

namespace weft {
namespace {

constexpr std::size_t kBlock = 64;

// A message whose digest is not finished.
struct Running {
  std::span<const std::byte> rest;  // begins at a block
  std::uint64_t length = 0;         // bytes of the whole message
  Digest* digest = nullptr;
  Sha256State state = kSha256Start;

  std::size_t blocks() const { return rest.size() / kBlock; }
  void advance(std::size_t blocks) { rest = rest.subspan(blocks * kBlock); }
};

// Feeds the same number of blocks to all lanes. Lanes without a message repeat the work of another.
void update_wide(std::span<Running* const> messages, std::size_t blocks) {
  Sha256WideState states;
  std::array<const std::byte*, kSha256WideLanes> data;
  for (std::size_t lane = 0; lane < kSha256WideLanes; ++lane) {
    const Running& message = *messages[lane < messages.size() ? lane : 0];
    data[lane] = message.rest.data();
    for (std::size_t i = 0; i < 8; ++i) states.words[i][lane] = message.state[i];
  }
  sha256_wide_update(states, data, blocks);
  for (std::size_t lane = 0; lane < messages.size(); ++lane) {
    for (std::size_t i = 0; i < 8; ++i) messages[lane]->state[i] = states.words[i][lane];
    messages[lane]->advance(blocks);
  }
}

void update_pair(Running& a, Running& b, std::size_t blocks) {
  sha256_lanes_update(a.state, a.rest.data(), b.state, b.rest.data(), blocks);
  a.advance(blocks);
  b.advance(blocks);
}

void update_alone(Running& message, std::size_t blocks) {
  if (blocks == 0) return;
  if (!sha256_lanes_usable()) {
    Running* only = &message;
    return update_wide(std::span(&only, 1), blocks);
  }
  Running idle = message;  // the second lane costs no time
  update_pair(message, idle, blocks);
}

// Keeps the lanes full, the longest messages first, until at most `leave` messages have whole blocks left: other
// methods are faster for so few.
void run_wide(std::span<Running> longest_first, std::size_t leave) {
  std::vector<Running*> lanes;
  for (std::size_t next = 0;;) {
    while (lanes.size() < kSha256WideLanes && next < longest_first.size()) lanes.push_back(&longest_first[next++]);
    std::erase_if(lanes, [](const Running* message) { return message->blocks() == 0; });
    if (lanes.size() < kSha256WideLanes && next < longest_first.size()) continue;
    if (lanes.size() <= leave) return;
    auto shortest = std::min_element(lanes.begin(), lanes.end(),
                                     [](const Running* a, const Running* b) { return a->blocks() < b->blocks(); });
    update_wide(lanes, (*shortest)->blocks());
  }
}

void run_pairs(std::span<Running> messages) {
  std::vector<Running*> left;
  for (Running& message : messages)
    if (message.blocks() > 0) left.push_back(&message);
  std::sort(left.begin(), left.end(), [](const Running* a, const Running* b) { return a->blocks() > b->blocks(); });
  for (std::size_t i = 0; i + 1 < left.size(); i += 2) update_pair(*left[i], *left[i + 1], left[i + 1]->blocks());
}

// Feeds the remaining blocks and the padding.
void finish(Running& message) {
  update_alone(message, message.blocks());
  std::array<std::byte, 2 * kBlock> tail{};
  if (!message.rest.empty()) std::memcpy(tail.data(), message.rest.data(), message.rest.size());
  tail[message.rest.size()] = std::byte{0x80};
  const std::size_t size = message.rest.size() + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (unsigned i = 0; i < 8; ++i) tail[size - 1 - i] = static_cast<std::byte>(message.length * 8 >> (8U * i));
  message.rest = std::span(tail).first(size);
  update_alone(message, size / kBlock);
  for (std::size_t i = 0; i < message.digest->bytes.size(); ++i)
    message.digest->bytes[i] = static_cast<std::uint8_t>(message.state[i / 4] >> (24U - 8U * (i % 4)));
}

// Returns how many messages the other method hashes in the time of sixteen lanes.
std::size_t too_few_for_wide() {
  return sha256_lanes_usable() ? kSha256WideLanes / 2 : kSha256WideLanes / 8;
}

}  // namespace

std::size_t sha256_each_best() {
  return sha256_wide_usable() ? kSha256WideLanes : 4;
}

void sha256_each(std::span<const std::span<const std::byte>> messages, std::span<Digest> digests) {
  const bool wide = sha256_wide_usable() && messages.size() > too_few_for_wide();
  if (!wide && !sha256_lanes_usable()) {
    for (std::size_t i = 0; i < messages.size(); ++i) digests[i] = sha256(messages[i]);
    return;
  }
  std::vector<Running> running;
  running.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) running.push_back({messages[i], messages[i].size(), &digests[i]});
  std::stable_sort(running.begin(), running.end(),
                   [](const Running& a, const Running& b) { return a.length > b.length; });
  if (wide) run_wide(running, sha256_lanes_usable() ? too_few_for_wide() : 0);
  if (sha256_lanes_usable()) run_pairs(running);
  for (Running& message : running) finish(message);
}

}  // namespace weft
