// Bytes that pulls of other nodes have received and not published (weft/cluster/pulled.h).
#pragma once

#include <memory>
#include <string>

#include "peers/links.h"
#include "weft/cluster/exchange.h"
#include "weft/cluster/pulled.h"
#include "weft/result.h"

namespace weft {

// Any thread.
class PeerPulls {
 public:
  // Both outlive this.
  PeerPulls(Exchange& exchange, PeerLinks& links) : exchange_(exchange), links_(links) {}

  // As PulledFiles::read(), of a pull of this node. A node that is silent for three seconds is given up, because the
  // hub has the bytes too.
  Result<PulledPart> read(const std::string& node, const PulledAsk& ask);

 private:
  Exchange& exchange_;
  PeerLinks& links_;
};

}  // namespace weft
