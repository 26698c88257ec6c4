// What is in flight. The transport owns each operation, with its buffer, from before it is posted until its completion
// has been read or the endpoint is closed: nothing that libfabric may still write to can be freed.
#pragma once

#include <rdma/fabric.h>

#include <memory>
#include <span>

#include "net/transport/domain.h"
#include "net/transport/landing.h"
#include "net/transport/read_outcome.h"
#include "weft/transport.h"

namespace weft::net {

// Of a connection; not reused in one transport. 0: of none.
using ConnectionId = std::uint32_t;

enum class OperationKind : std::uint8_t { receive, send, read };

struct Operation {
  explicit Operation(OperationKind what) : kind(what) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  fi_context2 context{};  // libfabric's while it is in flight; its address is the operation's name
  const OperationKind kind;
  PeerId peer = 0;              // of sends and reads
  ConnectionId connection = 0;  // that it was posted on, or of a receive for all: that its message came by
};

// A message that is being received or sent.
struct MessageOperation final : Operation {
  MessageOperation(OperationKind what, MessageBuffer memory) : Operation(what), buffer(memory) {}
  const MessageBuffer buffer;
  std::size_t length = 0;  // of a message to send
  std::uint32_t data = 0;  // that comes along: the number that the other end gave to the connection
};

class FabricLanding final : public CountedLanding {
 public:
  FabricLanding(std::span<std::byte> memory, std::shared_ptr<const void> owner, Registration registration)
      : CountedLanding(memory, std::move(owner)), registration_(std::move(registration)) {}
  Registration& registration() { return registration_; }

 private:
  Registration registration_;
};

struct ReadOperation final : Operation {
  ReadOperation() : Operation(OperationKind::read) {}

  FabricLanding& landing() const { return static_cast<FabricLanding&>(*use); }

  LandingUse use;
  std::size_t at = 0;
  std::size_t length = 0;
  std::uint64_t address = 0;
  std::uint64_t key = 0;
  std::shared_ptr<ReadOutcome> outcome = std::make_shared<ReadOutcome>();
};

}  // namespace weft::net
