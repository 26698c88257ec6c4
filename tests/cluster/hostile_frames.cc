#include "hostile_frames.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/tapped_transport.h"
#include "net/session/frame.h"
#include "net/session/handshake.h"
#include "peers/messages.h"
#include "testing.h"
#include "weft/model/manifest.h"
#include "weft/store/snapshot.h"

namespace weft::hostile {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 10s;

Result<std::unique_ptr<Transport>> transport_to(const Victim& victim, Transport::Receiver receiver) {
  return open_fabric_transport({victim.provider, victim.host, 0, std::move(receiver)});
}

// Sends arbitrary messages to a daemon.
class Stranger {
 public:
  Stranger(std::unique_ptr<Transport> transport, PeerId peer) : transport_(std::move(transport)), peer_(peer) {}
  static Result<Stranger> open(const Victim& victim) {
    WEFT_TRY(auto transport, transport_to(victim, {}));
    WEFT_TRY(const PeerId peer, transport->add_peer(victim.peer.address));
    return Stranger(std::move(transport), peer);
  }
  Status send(std::span<const std::byte> message) {
    for (const Deadline end = deadline_in(kPatience); Deadline::clock::now() < end; std::this_thread::sleep_for(1ms)) {
      const Status sent = transport_->send(peer_, message);
      if (sent.ok()) ++sent_;
      if (sent.ok() || sent.error().code != Errc::busy) return sent;
    }
    return Error{Errc::timed_out, "the victim takes no messages"};
  }
  // Waits until all accepted messages are sent: closing the transport earlier would lose them.
  Status flush() const {
    for (const Deadline end = deadline_in(kPatience); Deadline::clock::now() < end; std::this_thread::sleep_for(1ms))
      if (transport_->counters().messages_sent >= sent_) return {};
    return Error{Errc::timed_out, "the victim takes no more messages"};
  }
  std::size_t sent() const { return sent_; }
  const EndpointAddress& address() const { return transport_->address(); }

 private:
  std::unique_ptr<Transport> transport_;
  PeerId peer_;
  std::size_t sent_ = 0;
};

// Records what a node of the cluster sends, as an eavesdropper could. Any thread.
class Overheard {
 public:
  Overheard(const Victim& victim, const std::string& key_file) : victim_(victim) {
    options_.node = "overheard";
    options_.key_file = key_file;
  }
  Status open() {
    options_.transports = {[this](Transport::Receiver receiver) -> Result<std::unique_ptr<Transport>> {
      WEFT_TRY(auto real, transport_to(victim_, std::move(receiver)));
      return std::unique_ptr<Transport>(
          std::make_unique<conformance::TappedTransport>(std::move(real), [this](auto frame) {
            const std::lock_guard lock(mutex_);
            frames_.emplace_back(frame.begin(), frame.end());
            return true;
          }));
    }};
    WEFT_TRY(exchange_, Exchange::open(options_));
    return {};
  }
  void close() { exchange_.reset(); }
  // Sends a request and reads the bytes of its answer, as a node does.
  Status ask(const PeerRequest& request) {
    WEFT_TRY(const auto answer, exchange_->call(victim_.peer, encode_request(request), deadline_in(kPatience)));
    for (std::size_t window = 0; window < answer->windows(); ++window) {
      WEFT_TRY(const LandingBuffer buffer, exchange_->landing(deadline_in(kPatience)));
      const auto length = std::min<std::size_t>(kLandingBufferBytes, answer->length(window));
      WEFT_TRY(const WindowRead read, answer->read(window, 0, buffer.landing(), 0, length));
      WEFT_CHECK(read->wait(deadline_in(kPatience)));
    }
    return {};
  }
  std::vector<Frame> frames() const {
    const std::lock_guard lock(mutex_);
    return frames_;
  }

 private:
  const Victim& victim_;
  ExchangeOptions options_;
  mutable std::mutex mutex_;
  std::vector<Frame> frames_;  // guarded by mutex_
  std::unique_ptr<Exchange> exchange_;
};

// Returns requests for one version of this store: its manifest, its holders, and the first chunk of each large blob.
Result<std::vector<PeerRequest>> requests_for(Store& has) {
  WEFT_TRY(const Digest digest, first_manifest(has));
  WEFT_TRY(const auto bytes, has.open_manifest(digest));
  WEFT_TRY(const Manifest manifest, decode_manifest(bytes->bytes()));
  std::vector<PeerRequest> requests{AskManifest{digest, 0}, AskHolders{digest}};
  for (const File& file : manifest.files)
    for (const Extent& extent : file.extents)
      if (extent.id.length > kShortHeadBytesMax) requests.emplace_back(AskBytes{{{extent.id, 0, 1}}});
  return requests;
}

Frame hello_from(const EndpointAddress& address, std::uint64_t session, const net::Secret& key = net::Secret()) {
  return net::Caller({net::KeyRing(key), "nobody", address, session}).hello();
}

// Returns an unused address.
EndpointAddress elsewhere(EndpointAddress address, std::size_t number) {
  if (address.size() > 7) address[7] = static_cast<std::byte>(100 + number % 100);
  return address;
}

// Returns another unused address for each number: another port and host of a socket address.
EndpointAddress far_elsewhere(EndpointAddress address, std::size_t number) {
  if (address.size() < 8) return address;
  address[2] = static_cast<std::byte>(8 + number / 256 % 128);
  address[3] = static_cast<std::byte>(number % 256);
  return elsewhere(std::move(address), number);
}

std::vector<Frame> bad_frames(const EndpointAddress& own, std::size_t count) {
  std::vector<Frame> out;
  const Frame hello = hello_from(own, 1);
  for (std::size_t i = 0; i < count; ++i) {
    const Frame random = testing::random_bytes(1 + (i * 7919) % kMessageBytesMax, i);
    out.push_back(random);
    out.emplace_back(hello.begin(), hello.begin() + static_cast<std::ptrdiff_t>(1 + i % (hello.size() - 1)));
    out.push_back(hello);
    out.back()[(i * 31) % hello.size()] ^= static_cast<std::byte>(1U << (i % 8));
    out.push_back(hello_from(elsewhere(own, i), i + 2));
    const auto kind = static_cast<net::FrameKind>(1 + i % 5);
    const auto payload = std::span(random).first(std::min(random.size(), net::kPayloadBytesMax));
    out.push_back(net::make_frame({kind, static_cast<std::uint16_t>(i), i, i}, payload));
  }
  return out;
}

Status send_all(Stranger& stranger, std::span<const Frame> frames) {
  for (const Frame& frame : frames) WEFT_CHECK(stranger.send(frame));
  return stranger.flush();
}

}  // namespace

Result<Digest> first_manifest(Store& has) {
  WEFT_TRY(const auto snapshot, has.snapshot());
  WEFT_TRY(const auto models, snapshot->models());
  if (models.rows.empty()) return Error{Errc::not_found, "a store without models"};
  WEFT_TRY(const auto versions, snapshot->versions(models.rows.front().id));
  if (versions.rows.empty()) return Error{Errc::not_found, "a model without versions"};
  return versions.rows.front().manifest;
}

Result<Sent> replay(const Victim& victim, const std::string& key_file, Store& has, std::size_t times) {
  Sent sent;
  WEFT_TRY(const auto requests, requests_for(has));
  WEFT_TRY(Stranger stranger, Stranger::open(victim));
  Overheard honest(victim, key_file);
  WEFT_CHECK(honest.open());
  for (const PeerRequest& request : requests) {
    WEFT_CHECK(honest.ask(request));
    ++sent.answers;
  }
  const std::vector<Frame> frames = honest.frames();
  sent.frames = frames.size();
  WEFT_CHECK(send_all(stranger, frames));
  for (const PeerRequest& request : requests) {
    WEFT_CHECK(honest.ask(request));
    ++sent.answers_after;
  }
  honest.close();
  for (std::size_t i = 0; i < times; ++i) WEFT_CHECK(send_all(stranger, frames));
  sent.messages = stranger.sent();
  return sent;
}

Result<Sent> noise(const Victim& victim, std::size_t count) {
  WEFT_TRY(Stranger stranger, Stranger::open(victim));
  const auto frames = bad_frames(stranger.address(), count);
  WEFT_CHECK(send_all(stranger, frames));
  return Sent{frames.size(), stranger.sent(), 0, 0};
}

Result<Sent> crowd(const Victim& victim, const std::string& key_file, std::size_t count) {
  net::Secret key;
  if (!key_file.empty()) {
    WEFT_TRY(key, net::read_cluster_key(key_file));
  }
  WEFT_TRY(Stranger stranger, Stranger::open(victim));
  for (std::size_t i = 0; i < count; ++i) {
    WEFT_CHECK(stranger.send(hello_from(far_elsewhere(stranger.address(), i), i + 1, key)));
    if (i % 4 == 0) std::this_thread::sleep_for(2ms);
  }
  WEFT_CHECK(stranger.flush());
  return Sent{count, stranger.sent(), 0, 0};
}

}  // namespace weft::hostile
