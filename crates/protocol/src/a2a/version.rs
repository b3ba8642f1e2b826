//! The two generations of A2A that are spoken.

names! {
    /// A generation of A2A. Methods, states and the shape of messages differ between the two; what they mean does
    /// not.
    ///
    /// ```
    /// use proofhouse_protocol::a2a::A2aVersion;
    ///
    /// assert_eq!(A2aVersion::parse("1.0"), Some(A2aVersion::V1_0));
    /// assert_eq!(A2aVersion::of_offer(Some("0.3.0")), A2aVersion::V0_3);
    /// ```
    pub enum A2aVersion {
        /// Methods such as `message/send`, and a `kind` on every value.
        V0_3 = "0.3",
        /// Methods such as `SendMessage`, and values that are told by their place.
        V1_0 = "1.0",
    }
}

impl A2aVersion {
    /// What a peer speaks that has no header `A2A-Version`.
    pub const WITHOUT_HEADER: Self = Self::V0_3;

    /// What `protocolVersion` of a card of 0.3 says.
    pub const CARD_0_3: &'static str = "0.3.0";

    /// The generation that the header `A2A-Version` of a request asks for.
    ///
    /// ```
    /// use proofhouse_protocol::a2a::A2aVersion;
    ///
    /// assert_eq!(A2aVersion::of_header(Some("1.0")), A2aVersion::V1_0);
    /// assert_eq!(A2aVersion::of_header(None), A2aVersion::V0_3);
    /// ```
    #[must_use]
    pub fn of_header(header: Option<&str>) -> Self {
        match header {
            Some(version) if version.starts_with('1') => Self::V1_0,
            _ => Self::WITHOUT_HEADER,
        }
    }

    /// The generation that an interface of a card offers, from what it says as its version.
    #[must_use]
    pub fn of_offer(version: Option<&str>) -> Self {
        match version {
            Some(version) if version.starts_with("0.") => Self::V0_3,
            _ => Self::V1_0,
        }
    }
}
