//! Messages and descriptors between two processes, over a pair of Unix sockets.
//!
//! Sequential packets keep messages apart, and their end tells that the other process is gone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// Descriptors in one message; the kernel takes 253.
pub(super) const DESCRIPTORS_MAX: usize = 64;
/// Bytes of a message: the addresses of so many sockets, or the whole of a refusal.
pub(super) const BYTES_MAX: usize = 64 * 1024;

/// One end of the way between two processes.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

impl Channel {
    /// Both ends: ours, and the one that becomes the standard input of the other process.
    pub(super) fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(ours), theirs))
    }

    /// An end that this process was started with.
    pub(super) fn from(end: OwnedFd) -> Channel {
        Channel(end)
    }

    /// How long to wait for the other process from now on.
    pub(super) fn set_patience(&self, time: Duration) -> io::Result<()> {
        set_socket_timeout(&self.0, Timeout::Recv, Some(time))?;
        set_socket_timeout(&self.0, Timeout::Send, Some(time))?;
        Ok(())
    }

    /// Sends a message with the descriptors that belong to it.
    pub(super) fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors))
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        sendmsg(&self.0, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message, with its descriptors; `None` once the other process is gone.
    pub(super) fn receive(&self) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        let mut bytes = vec![0; BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            match recvmsg(&self.0, &mut slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result?,
            }
        };
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message was cut"));
        }
        if received.bytes == 0 {
            return Ok(None);
        }
        bytes.truncate(received.bytes);
        let mut descriptors = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        Ok(Some((bytes, descriptors)))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn messages_stay_apart_and_carry_descriptors() {
        let (one, other) = Channel::pair().unwrap();
        let other = Channel::from(other);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let many = vec![listener.as_fd(); DESCRIPTORS_MAX];
        one.send(b"first", &[]).unwrap();
        one.send(b"second", &many).unwrap();
        let (bytes, descriptors) = other.receive().unwrap().unwrap();
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"first"[..], 0));
        let (bytes, mut descriptors) = other.receive().unwrap().unwrap();
        assert_eq!((bytes.as_slice(), descriptors.len()), (&b"second"[..], DESCRIPTORS_MAX));
        let again = std::net::TcpListener::from(descriptors.remove(0));
        assert_eq!(again.local_addr().unwrap(), listener.local_addr().unwrap());
        drop(one);
        assert!(other.receive().unwrap().is_none());
    }

    #[test]
    fn patience_ends() {
        let (one, _other) = Channel::pair().unwrap();
        one.set_patience(Duration::from_millis(20)).unwrap();
        assert_eq!(one.receive().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
